"""AllocateProducerIds: the controller gives a broker a block of producer ids."""

from ottla.wire.fields import Request, Response, i16, i32, i64


class AllocateProducerIdsRequest(Request):
    broker_id: i32 = 0
    broker_epoch: i64 = -1


class AllocateProducerIdsResponse(Response):
    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    producer_id_start: i64 = 0
    producer_id_len: i32 = 0
