"""CreatePartitions: topics grow."""

from typing import ClassVar

from ottla.wire.fields import Request, Response, Spec, Struct, i16, i32
from ottla.wire.keys import ApiKey


class CreatePartitionsAssignment(Struct):
    broker_ids: tuple[i32, ...] = ()


class CreatePartitionsTopic(Struct):
    name: str = ""
    count: i32 = 0
    assignments: list[CreatePartitionsAssignment] | None = []


class CreatePartitionsRequest(Request):
    spec: ClassVar[Spec] = Spec(versions=(0, 3), flexible=2, api_key=ApiKey.CREATE_PARTITIONS)

    topics: list[CreatePartitionsTopic] = []
    timeout_ms: i32 = 0
    validate_only: bool = False


class CreatePartitionsTopicResult(Struct):
    name: str = ""
    error_code: i16 = 0
    error_message: str | None = None


class CreatePartitionsResponse(Response):
    spec: ClassVar[Spec] = Spec(versions=(0, 3), flexible=2, api_key=ApiKey.CREATE_PARTITIONS)

    throttle_time_ms: i32 = 0
    results: list[CreatePartitionsTopicResult] = []
