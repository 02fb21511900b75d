"""AlterPartition: a leader asks the controller to change its ISR."""

from typing import Annotated

from ottla.wire.fields import Request, Response, Struct, i8, i16, i32, i64, not_ignorable, since, until, uuid
from ottla.wire.primitives import ZERO_UUID


class BrokerState(Struct):
    broker_id: i32 = 0
    broker_epoch: i64 = -1


class RequestPartitionData(Struct):
    partition_index: i32 = 0
    leader_epoch: i32 = 0
    new_isr: Annotated[tuple[i32, ...], until(2), not_ignorable] = ()
    new_isr_with_epochs: Annotated[list[BrokerState], since(3), not_ignorable] = []
    leader_recovery_state: Annotated[i8, since(1), not_ignorable] = 0
    partition_epoch: i32 = 0


class RequestTopicData(Struct):
    topic_name: Annotated[str, until(1)] = ""
    topic_id: Annotated[uuid, since(2)] = ZERO_UUID
    partitions: list[RequestPartitionData] = []


class AlterPartitionRequest(Request):
    broker_id: i32 = 0
    broker_epoch: i64 = -1
    topics: list[RequestTopicData] = []


class ResponsePartitionData(Struct):
    partition_index: i32 = 0
    error_code: i16 = 0
    leader_id: i32 = 0
    leader_epoch: i32 = 0
    isr: tuple[i32, ...] = ()
    leader_recovery_state: Annotated[i8, since(1)] = 0
    partition_epoch: i32 = 0


class ResponseTopicData(Struct):
    topic_name: Annotated[str, until(1)] = ""
    topic_id: Annotated[uuid, since(2)] = ZERO_UUID
    partitions: list[ResponsePartitionData] = []


class AlterPartitionResponse(Response):
    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    topics: list[ResponseTopicData] = []
