"""SaslHandshake: the client names its SASL mechanism."""

from typing import ClassVar

from ottla.wire.fields import Request, Response, Spec, i16
from ottla.wire.keys import ApiKey


class SaslHandshakeRequest(Request):
    spec: ClassVar[Spec] = Spec(versions=(0, 1), flexible=None, api_key=ApiKey.SASL_HANDSHAKE)

    mechanism: str = ""


class SaslHandshakeResponse(Response):
    spec: ClassVar[Spec] = Spec(versions=(0, 1), flexible=None, api_key=ApiKey.SASL_HANDSHAKE)

    error_code: i16 = 0
    mechanisms: tuple[str, ...] = ()
