"""ExpireDelegationToken: a token ends."""

from typing import ClassVar

from ottla.wire.fields import Request, Response, Spec, i16, i32, i64
from ottla.wire.keys import ApiKey


class ExpireDelegationTokenRequest(Request):
    spec: ClassVar[Spec] = Spec(versions=(0, 2), flexible=2, api_key=ApiKey.EXPIRE_DELEGATION_TOKEN)

    hmac: bytes = b""
    expiry_time_period_ms: i64 = 0


class ExpireDelegationTokenResponse(Response):
    spec: ClassVar[Spec] = Spec(versions=(0, 2), flexible=2, api_key=ApiKey.EXPIRE_DELEGATION_TOKEN)

    error_code: i16 = 0
    expiry_timestamp_ms: i64 = 0
    throttle_time_ms: i32 = 0
