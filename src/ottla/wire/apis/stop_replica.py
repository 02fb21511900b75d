"""StopReplica: the controller tells a broker to stop, and perhaps delete, its replicas."""

from typing import Annotated

from ottla.wire.fields import Request, Response, Struct, between, i16, i32, i64, not_ignorable, since, until


class StopReplicaPartitionV0(Struct):
    topic_name: str = ""
    partition_index: i32 = 0


class StopReplicaTopicV1(Struct):
    name: str = ""
    partition_indexes: tuple[i32, ...] = ()


class StopReplicaPartitionState(Struct):
    partition_index: i32 = 0
    leader_epoch: i32 = -1
    delete_partition: bool = False


class StopReplicaTopicState(Struct):
    topic_name: str = ""
    partition_states: list[StopReplicaPartitionState] = []


class StopReplicaRequest(Request):
    controller_id: i32 = 0
    is_kraft_controller: Annotated[bool, since(4), not_ignorable] = False
    controller_epoch: i32 = 0
    broker_epoch: Annotated[i64, since(1)] = -1
    delete_partitions: Annotated[bool, until(2), not_ignorable] = False
    ungrouped_partitions: Annotated[list[StopReplicaPartitionV0], until(0), not_ignorable] = []
    topics: Annotated[list[StopReplicaTopicV1], between(1, 2), not_ignorable] = []
    topic_states: Annotated[list[StopReplicaTopicState], since(3), not_ignorable] = []


class StopReplicaPartitionError(Struct):
    topic_name: str = ""
    partition_index: i32 = 0
    error_code: i16 = 0


class StopReplicaResponse(Response):
    error_code: i16 = 0
    partition_errors: list[StopReplicaPartitionError] = []
