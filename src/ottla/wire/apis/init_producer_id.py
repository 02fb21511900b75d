"""InitProducerId: a producer gets the id and epoch of its sequences.

Version 6 is KIP-939's, for transactions that somebody else decides; Kafka 3.9 ends at 5.
"""

from typing import Annotated

from ottla.wire.fields import Request, Response, i16, i32, i64, not_ignorable, since


class InitProducerIdRequest(Request):
    transactional_id: str | None = ""
    transaction_timeout_ms: i32 = 0
    producer_id: Annotated[i64, since(3), not_ignorable] = -1
    producer_epoch: Annotated[i16, since(3), not_ignorable] = -1
    enable_2pc: Annotated[bool, since(6), not_ignorable] = False
    keep_prepared_txn: Annotated[bool, since(6), not_ignorable] = False


class InitProducerIdResponse(Response):
    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    producer_id: i64 = -1
    producer_epoch: i16 = 0
    ongoing_txn_producer_id: Annotated[i64, since(6)] = -1
    ongoing_txn_producer_epoch: Annotated[i16, since(6)] = -1
