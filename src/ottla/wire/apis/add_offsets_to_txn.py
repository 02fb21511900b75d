"""AddOffsetsToTxn: a group's offsets join a transaction."""

from ottla.wire.fields import Request, Response, i16, i32, i64


class AddOffsetsToTxnRequest(Request):
    transactional_id: str = ""
    producer_id: i64 = 0
    producer_epoch: i16 = 0
    group_id: str = ""


class AddOffsetsToTxnResponse(Response):
    throttle_time_ms: i32 = 0
    error_code: i16 = 0
