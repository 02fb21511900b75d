"""ExpireDelegationToken: a token ends."""

from ottla.wire.fields import Request, Response, i16, i32, i64


class ExpireDelegationTokenRequest(Request):
    hmac: bytes = b""
    expiry_time_period_ms: i64 = 0


class ExpireDelegationTokenResponse(Response):
    error_code: i16 = 0
    expiry_timestamp_ms: i64 = 0
    throttle_time_ms: i32 = 0
