"""ListPartitionReassignments: which partitions are on the move."""

from typing import ClassVar

from ottla.wire.fields import Request, Response, Spec, Struct, i16, i32
from ottla.wire.keys import ApiKey


class ListPartitionReassignmentsTopics(Struct):
    name: str = ""
    partition_indexes: tuple[i32, ...] = ()


class ListPartitionReassignmentsRequest(Request):
    spec: ClassVar[Spec] = Spec(versions=(0, 0), flexible=0, api_key=ApiKey.LIST_PARTITION_REASSIGNMENTS)

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
    spec: ClassVar[Spec] = Spec(versions=(0, 0), flexible=0, api_key=ApiKey.LIST_PARTITION_REASSIGNMENTS)

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: str | None = ""
    topics: list[OngoingTopicReassignment] = []
