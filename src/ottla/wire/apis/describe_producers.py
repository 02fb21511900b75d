"""DescribeProducers: the producers that a partition remembers."""

from ottla.wire.fields import Request, Response, Struct, i16, i32, i64


class TopicRequest(Struct):
    name: str = ""
    partition_indexes: tuple[i32, ...] = ()


class DescribeProducersRequest(Request):
    topics: list[TopicRequest] = []


class ProducerState(Struct):
    producer_id: i64 = 0
    producer_epoch: i32 = 0
    last_sequence: i32 = -1
    last_timestamp: i64 = -1
    coordinator_epoch: i32 = 0
    current_txn_start_offset: i64 = -1


class PartitionResponse(Struct):
    partition_index: i32 = 0
    error_code: i16 = 0
    error_message: str | None = None
    active_producers: list[ProducerState] = []


class TopicResponse(Struct):
    name: str = ""
    partitions: list[PartitionResponse] = []


class DescribeProducersResponse(Response):
    throttle_time_ms: i32 = 0
    topics: list[TopicResponse] = []
