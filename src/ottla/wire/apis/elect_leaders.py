"""ElectLeaders: elect preferred, or unclean, leaders."""

from typing import Annotated

from ottla.wire.fields import Request, Response, Struct, i8, i16, i32, not_ignorable, since


class TopicPartitions(Struct):
    topic: str = ""
    partitions: tuple[i32, ...] = ()


class ElectLeadersRequest(Request):
    election_type: Annotated[i8, since(1), not_ignorable] = 0
    topic_partitions: list[TopicPartitions] | None = []
    timeout_ms: i32 = 60_000


class PartitionResult(Struct):
    partition_id: i32 = 0
    error_code: i16 = 0
    error_message: str | None = ""


class ReplicaElectionResult(Struct):
    topic: str = ""
    partition_result: list[PartitionResult] = []


class ElectLeadersResponse(Response):
    throttle_time_ms: i32 = 0
    error_code: Annotated[i16, since(1)] = 0
    replica_election_results: list[ReplicaElectionResult] = []
