"""SaslAuthenticate: one step of a SASL exchange."""

from typing import Annotated, ClassVar

from ottla.wire.fields import Request, Response, Spec, i16, i64, since
from ottla.wire.keys import ApiKey


class SaslAuthenticateRequest(Request):
    spec: ClassVar[Spec] = Spec(versions=(0, 2), flexible=2, api_key=ApiKey.SASL_AUTHENTICATE)

    auth_bytes: bytes = b""


class SaslAuthenticateResponse(Response):
    spec: ClassVar[Spec] = Spec(versions=(0, 2), flexible=2, api_key=ApiKey.SASL_AUTHENTICATE)

    error_code: i16 = 0
    error_message: str | None = ""
    auth_bytes: bytes = b""
    session_lifetime_ms: Annotated[i64, since(1)] = 0
