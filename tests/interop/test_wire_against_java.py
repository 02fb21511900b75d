"""Messages: what we write Kafka's own Java classes read and write again, byte for byte."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ottla.wire.codec import UnsupportedVersion, decode, encode_bytes
from ottla.wire.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from ottla.wire.fields import Message
from ottla.wire.headers import decode_request_header, frame_request, frame_response
from ottla.wire.keys import ApiKey
from ottla.wire.stored import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
    TransactionLogKey,
    TransactionLogValue,
)
from support.processes.java_harness import JavaError, java_harness
from support.wire.messages import SPOKEN, all_message_classes, as_of, is_request, plain, structs, versions_of

pytestmark = [pytest.mark.apache, pytest.mark.java, pytest.mark.slow]
examples = settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck), database=None)

MESSAGES = {cls: f"org.apache.kafka.common.message.{cls.__name__}Data" for cls in all_message_classes()}
STORED = {
    OffsetCommitKey: "org.apache.kafka.coordinator.group.generated.OffsetCommitKey",
    OffsetCommitValue: "org.apache.kafka.coordinator.group.generated.OffsetCommitValue",
    GroupMetadataKey: "org.apache.kafka.coordinator.group.generated.GroupMetadataKey",
    GroupMetadataValue: "org.apache.kafka.coordinator.group.generated.GroupMetadataValue",
    TransactionLogKey: "org.apache.kafka.coordinator.transaction.generated.TransactionLogKey",
    TransactionLogValue: "org.apache.kafka.coordinator.transaction.generated.TransactionLogValue",
    ConsumerProtocolSubscription: "org.apache.kafka.common.message.ConsumerProtocolSubscription",
    ConsumerProtocolAssignment: "org.apache.kafka.common.message.ConsumerProtocolAssignment",
}
CLASSES: dict[type[Message], str] = {**MESSAGES, **STORED}


def asked_of_java(method: str, cls: type[Message], version: int, encoded: bytes = b"") -> bytes:
    question = struct.pack(">h", version) + CLASSES[cls].encode() + b"\0" + encoded
    return java_harness("WireOracle").call(method, question)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
@examples
@given(data=st.data())
def test_java_reads_our_bytes_and_writes_the_same(cls: type[Message], data: Any) -> None:
    message = data.draw(structs(cls))

    for version in versions_of(cls):
        sent = as_of(message, version)
        encoded = encode_bytes(sent, version)
        assert asked_of_java("rewrite", cls, version, encoded) == encoded
        assert plain(decode(cls, version, encoded)) == sent


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_a_message_without_arguments_is_the_one_that_java_constructs(cls: type[Message]) -> None:
    for version in versions_of(cls):
        assert encode_bytes(cls(), version) == asked_of_java("fresh", cls, version)


@pytest.mark.parametrize("api_key", SPOKEN, ids=lambda key: key.name)
def test_both_headers_of_every_version_are_javas(api_key: ApiKey) -> None:
    request, response = (cls for cls in MESSAGES if cls.spec.api_key == api_key)
    assert is_request(request)

    for version in versions_of(request):
        client_id, correlation_id = "consumer-ü", 7
        frame = b"".join(frame_request(request(), version, correlation_id, client_id))[4:]  # type: ignore[arg-type]
        answer = java_harness("WireOracle").call("header", frame)
        size = struct.unpack_from(">i", answer)[0]
        assert answer[4:] == frame[:size]
        header, body = decode_request_header(frame)
        assert body == size
        has_client_id = (api_key, version) != (ApiKey.CONTROLLED_SHUTDOWN, 0)
        assert header == (api_key, version, correlation_id, client_id if has_client_id else None)

        tags = java_harness("WireOracle").call("headers", struct.pack(">hh", version, api_key))[1]
        framed = b"".join(frame_response(response(), version, correlation_id))  # type: ignore[arg-type]
        assert framed[8:] == bytes(tags) + encode_bytes(response(), version)


@pytest.mark.parametrize("cls", MESSAGES, ids=lambda cls: cls.__name__)
@examples
@given(data=st.data())
def test_a_version_drops_or_refuses_what_it_lacks_as_java_does(cls: type[Message], data: Any) -> None:
    source, target = (data.draw(st.sampled_from(versions_of(cls))) for _ in range(2))
    message = as_of(data.draw(structs(cls)), source)
    question = struct.pack(">h", source) + CLASSES[cls].encode() + b"\0" + encode_bytes(message, source)
    try:
        expected = java_harness("WireOracle").call("convert", struct.pack(">h", target) + question)
    except JavaError as error:
        refusal = str(error)
    else:
        assert encode_bytes(message, target) == expected
        return
    if "UnsupportedVersionException" not in refusal:
        assert "NullPointerException" in refusal, "null where the target version has no null"
    elif is_request(cls):
        with pytest.raises(UnsupportedVersion):
            encode_bytes(message, target)
