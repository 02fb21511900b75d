"""RenewDelegationToken: a token lives longer."""

from typing import ClassVar

from ottla.wire.fields import Request, Response, Spec, i16, i32, i64
from ottla.wire.keys import ApiKey


class RenewDelegationTokenRequest(Request):
    spec: ClassVar[Spec] = Spec(versions=(0, 2), flexible=2, api_key=ApiKey.RENEW_DELEGATION_TOKEN)

    hmac: bytes = b""
    renew_period_ms: i64 = 0


class RenewDelegationTokenResponse(Response):
    spec: ClassVar[Spec] = Spec(versions=(0, 2), flexible=2, api_key=ApiKey.RENEW_DELEGATION_TOKEN)

    error_code: i16 = 0
    expiry_timestamp_ms: i64 = 0
    throttle_time_ms: i32 = 0
