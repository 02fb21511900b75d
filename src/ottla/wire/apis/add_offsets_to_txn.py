"""AddOffsetsToTxn: a group's offsets join a transaction."""

from typing import ClassVar

from ottla.wire.fields import Request, Response, Spec, i16, i32, i64
from ottla.wire.keys import ApiKey


class AddOffsetsToTxnRequest(Request):
    spec: ClassVar[Spec] = Spec(versions=(0, 4), flexible=3, api_key=ApiKey.ADD_OFFSETS_TO_TXN)

    transactional_id: str = ""
    producer_id: i64 = 0
    producer_epoch: i16 = 0
    group_id: str = ""


class AddOffsetsToTxnResponse(Response):
    spec: ClassVar[Spec] = Spec(versions=(0, 4), flexible=3, api_key=ApiKey.ADD_OFFSETS_TO_TXN)

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
