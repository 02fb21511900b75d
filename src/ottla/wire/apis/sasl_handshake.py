"""SaslHandshake: the client names its SASL mechanism."""

from ottla.wire.fields import Request, Response, i16


class SaslHandshakeRequest(Request):
    mechanism: str = ""


class SaslHandshakeResponse(Response):
    error_code: i16 = 0
    mechanisms: tuple[str, ...] = ()
