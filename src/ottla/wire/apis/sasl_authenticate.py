"""SaslAuthenticate: one step of a SASL exchange."""

from typing import Annotated

from ottla.wire.fields import Request, Response, i16, i64, since


class SaslAuthenticateRequest(Request):
    auth_bytes: bytes = b""


class SaslAuthenticateResponse(Response):
    error_code: i16 = 0
    error_message: str | None = ""
    auth_bytes: bytes = b""
    session_lifetime_ms: Annotated[i64, since(1)] = 0
