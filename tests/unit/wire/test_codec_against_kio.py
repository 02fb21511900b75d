"""Every message in every version, byte for byte with an independent codec."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ottla.wire.codec import decode, encode_bytes
from ottla.wire.fields import Message
from support.wire.kio_oracle import as_kio, decoded_by_kio, encoded_by_kio, kio_class, limit_for
from support.wire.messages import all_message_classes, as_of, plain, structs, versions_of

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("cls", all_message_classes(), ids=lambda cls: cls.__name__)
@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck), database=None)
@given(data=st.data())
def test_every_version_has_the_bytes_that_kio_writes_and_reads(cls: type[Message], data: Any) -> None:
    message = data.draw(structs(cls, limit_for(cls)))

    for version in versions_of(cls):
        sent = as_of(message, version)
        encoded = encode_bytes(sent, version)
        assert encoded == encoded_by_kio(sent, version)
        assert decoded_by_kio(cls, version, encoded) == as_kio(sent, version, kio_class(cls, version))
        assert plain(decode(cls, version, encoded)) == sent
