"""LeaderAndIsr: the controller tells a broker which replicas it leads and which it follows."""

from typing import Annotated

from ottla.wire.fields import Request, Response, Struct, i8, i16, i32, i64, not_ignorable, since, until, uuid
from ottla.wire.primitives import ZERO_UUID


class LeaderAndIsrPartitionState(Struct):
    topic_name: Annotated[str, until(1)] = ""
    partition_index: i32 = 0
    controller_epoch: i32 = 0
    leader: i32 = 0
    leader_epoch: i32 = 0
    isr: tuple[i32, ...] = ()
    partition_epoch: i32 = 0
    replicas: tuple[i32, ...] = ()
    adding_replicas: Annotated[tuple[i32, ...], since(3)] = ()
    removing_replicas: Annotated[tuple[i32, ...], since(3)] = ()
    is_new: Annotated[bool, since(1)] = False
    leader_recovery_state: Annotated[i8, since(6), not_ignorable] = 0


class LeaderAndIsrTopicState(Struct):
    topic_name: str = ""
    topic_id: Annotated[uuid, since(5)] = ZERO_UUID
    partition_states: list[LeaderAndIsrPartitionState] = []


class LeaderAndIsrLiveLeader(Struct):
    broker_id: i32 = 0
    host_name: str = ""
    port: i32 = 0


class LeaderAndIsrRequest(Request):
    controller_id: i32 = 0
    is_kraft_controller: Annotated[bool, since(7), not_ignorable] = False
    controller_epoch: i32 = 0
    broker_epoch: Annotated[i64, since(2)] = -1
    type: Annotated[i8, since(5), not_ignorable] = 0
    ungrouped_partition_states: Annotated[list[LeaderAndIsrPartitionState], until(1), not_ignorable] = []
    topic_states: Annotated[list[LeaderAndIsrTopicState], since(2), not_ignorable] = []
    live_leaders: list[LeaderAndIsrLiveLeader] = []


class LeaderAndIsrPartitionError(Struct):
    topic_name: Annotated[str, until(4)] = ""
    partition_index: i32 = 0
    error_code: i16 = 0


class LeaderAndIsrTopicError(Struct):
    topic_id: uuid = ZERO_UUID
    partition_errors: list[LeaderAndIsrPartitionError] = []


class LeaderAndIsrResponse(Response):
    error_code: i16 = 0
    partition_errors: Annotated[list[LeaderAndIsrPartitionError], until(4)] = []
    topics: Annotated[list[LeaderAndIsrTopicError], since(5)] = []
