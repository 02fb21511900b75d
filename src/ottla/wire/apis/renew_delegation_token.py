"""RenewDelegationToken: a token lives longer."""

from ottla.wire.fields import Request, Response, i16, i32, i64


class RenewDelegationTokenRequest(Request):
    hmac: bytes = b""
    renew_period_ms: i64 = 0


class RenewDelegationTokenResponse(Response):
    error_code: i16 = 0
    expiry_timestamp_ms: i64 = 0
    throttle_time_ms: i32 = 0
