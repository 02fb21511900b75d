"""AlterPartitionReassignments: partitions get new replicas, or keep their old ones."""

from typing import ClassVar

from ottla.wire.fields import Request, Response, Spec, Struct, i16, i32
from ottla.wire.keys import ApiKey


class ReassignablePartition(Struct):
    partition_index: i32 = 0
    replicas: tuple[i32, ...] | None = None


class ReassignableTopic(Struct):
    name: str = ""
    partitions: list[ReassignablePartition] = []


class AlterPartitionReassignmentsRequest(Request):
    spec: ClassVar[Spec] = Spec(versions=(0, 0), flexible=0, api_key=ApiKey.ALTER_PARTITION_REASSIGNMENTS)

    timeout_ms: i32 = 60_000
    topics: list[ReassignableTopic] = []


class ReassignablePartitionResponse(Struct):
    partition_index: i32 = 0
    error_code: i16 = 0
    error_message: str | None = ""


class ReassignableTopicResponse(Struct):
    name: str = ""
    partitions: list[ReassignablePartitionResponse] = []


class AlterPartitionReassignmentsResponse(Response):
    spec: ClassVar[Spec] = Spec(versions=(0, 0), flexible=0, api_key=ApiKey.ALTER_PARTITION_REASSIGNMENTS)

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: str | None = ""
    responses: list[ReassignableTopicResponse] = []
