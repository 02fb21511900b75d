"""AllocateProducerIds: the controller gives a broker a block of producer ids."""

from typing import ClassVar

from ottla.wire.fields import Request, Response, Spec, i16, i32, i64
from ottla.wire.keys import ApiKey


class AllocateProducerIdsRequest(Request):
    spec: ClassVar[Spec] = Spec(versions=(0, 0), flexible=0, api_key=ApiKey.ALLOCATE_PRODUCER_IDS)

    broker_id: i32 = 0
    broker_epoch: i64 = -1


class AllocateProducerIdsResponse(Response):
    spec: ClassVar[Spec] = Spec(versions=(0, 0), flexible=0, api_key=ApiKey.ALLOCATE_PRODUCER_IDS)

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    producer_id_start: i64 = 0
    producer_id_len: i32 = 0
