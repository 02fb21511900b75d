"""Produce: a client hands record batches to the leaders of their partitions."""

from typing import Annotated

from ottla.wire.apis.leader_hint import LeaderIdAndEpoch, NodeEndpoint
from ottla.wire.fields import (
    RecordBatches,
    Request,
    Response,
    Struct,
    i16,
    i32,
    i64,
    not_ignorable,
    since,
    tag,
)


class PartitionProduceData(Struct):
    index: i32 = 0
    records: RecordBatches = None


class TopicProduceData(Struct):
    name: str = ""
    partition_data: list[PartitionProduceData] = []


class ProduceRequest(Request):
    transactional_id: Annotated[str | None, since(3), not_ignorable] = None
    acks: i16 = 0
    timeout_ms: i32 = 0
    topic_data: list[TopicProduceData] = []


class BatchIndexAndErrorMessage(Struct):
    batch_index: i32 = 0
    batch_index_error_message: str | None = None


class PartitionProduceResponse(Struct):
    index: i32 = 0
    error_code: i16 = 0
    base_offset: i64 = 0
    log_append_time_ms: Annotated[i64, since(2)] = -1
    log_start_offset: Annotated[i64, since(5)] = -1
    record_errors: Annotated[list[BatchIndexAndErrorMessage], since(8)] = []
    error_message: Annotated[str | None, since(8)] = None
    current_leader: Annotated[LeaderIdAndEpoch, since(10), tag(0)] = LeaderIdAndEpoch()


class TopicProduceResponse(Struct):
    name: str = ""
    partition_responses: list[PartitionProduceResponse] = []


class ProduceResponse(Response):
    responses: list[TopicProduceResponse] = []
    throttle_time_ms: Annotated[i32, since(1)] = 0
    node_endpoints: Annotated[list[NodeEndpoint], since(10), tag(0)] = []
