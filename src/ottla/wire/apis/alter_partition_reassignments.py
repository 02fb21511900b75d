"""AlterPartitionReassignments: partitions get new replicas, or keep their old ones."""

from ottla.wire.fields import Request, Response, Struct, i16, i32


class ReassignablePartition(Struct):
    partition_index: i32 = 0
    replicas: tuple[i32, ...] | None = None


class ReassignableTopic(Struct):
    name: str = ""
    partitions: list[ReassignablePartition] = []


class AlterPartitionReassignmentsRequest(Request):
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
    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: str | None = ""
    responses: list[ReassignableTopicResponse] = []
