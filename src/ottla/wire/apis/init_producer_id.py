"""InitProducerId: a producer gets the id and epoch of its sequences."""

from typing import Annotated, ClassVar

from ottla.wire.fields import Request, Response, Spec, i16, i32, i64, not_ignorable, since
from ottla.wire.keys import ApiKey


class InitProducerIdRequest(Request):
    spec: ClassVar[Spec] = Spec(versions=(0, 5), flexible=2, api_key=ApiKey.INIT_PRODUCER_ID)

    transactional_id: str | None = ""
    transaction_timeout_ms: i32 = 0
    producer_id: Annotated[i64, since(3), not_ignorable] = -1
    producer_epoch: Annotated[i16, since(3), not_ignorable] = -1


class InitProducerIdResponse(Response):
    spec: ClassVar[Spec] = Spec(versions=(0, 5), flexible=2, api_key=ApiKey.INIT_PRODUCER_ID)

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    producer_id: i64 = -1
    producer_epoch: i16 = 0
