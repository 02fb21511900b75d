"""ElectLeaders: elect preferred, or unclean, leaders."""

from typing import Annotated, ClassVar

from ottla.wire.fields import Request, Response, Spec, Struct, i8, i16, i32, not_ignorable, since
from ottla.wire.keys import ApiKey


class TopicPartitions(Struct):
    topic: str = ""
    partitions: tuple[i32, ...] = ()


class ElectLeadersRequest(Request):
    spec: ClassVar[Spec] = Spec(versions=(0, 2), flexible=2, api_key=ApiKey.ELECT_LEADERS)

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
    spec: ClassVar[Spec] = Spec(versions=(0, 2), flexible=2, api_key=ApiKey.ELECT_LEADERS)

    throttle_time_ms: i32 = 0
    error_code: Annotated[i16, since(1)] = 0
    replica_election_results: list[ReplicaElectionResult] = []
