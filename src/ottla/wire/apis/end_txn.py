"""EndTxn: a transaction commits or aborts."""

from ottla.wire.fields import Request, Response, i16, i32, i64


class EndTxnRequest(Request):
    transactional_id: str = ""
    producer_id: i64 = 0
    producer_epoch: i16 = 0
    committed: bool = False


class EndTxnResponse(Response):
    throttle_time_ms: i32 = 0
    error_code: i16 = 0
