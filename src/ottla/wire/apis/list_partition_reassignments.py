"""ListPartitionReassignments: which partitions are on the move."""

from ottla.wire.fields import Request, Response, Struct, i16, i32


class ListPartitionReassignmentsTopics(Struct):
    name: str = ""
    partition_indexes: tuple[i32, ...] = ()


class ListPartitionReassignmentsRequest(Request):
    timeout_ms: i32 = 60_000
    topics: list[ListPartitionReassignmentsTopics] | None = None


class OngoingPartitionReassignment(Struct):
    partition_index: i32 = 0
    replicas: tuple[i32, ...] = ()
    adding_replicas: tuple[i32, ...] = ()
    removing_replicas: tuple[i32, ...] = ()


class OngoingTopicReassignment(Struct):
    name: str = ""
    partitions: list[OngoingPartitionReassignment] = []


class ListPartitionReassignmentsResponse(Response):
    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: str | None = ""
    topics: list[OngoingTopicReassignment] = []
