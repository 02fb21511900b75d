"""CreatePartitions: topics grow."""

from ottla.wire.fields import Request, Response, Struct, i16, i32


class CreatePartitionsAssignment(Struct):
    broker_ids: tuple[i32, ...] = ()


class CreatePartitionsTopic(Struct):
    name: str = ""
    count: i32 = 0
    assignments: list[CreatePartitionsAssignment] | None = []


class CreatePartitionsRequest(Request):
    topics: list[CreatePartitionsTopic] = []
    timeout_ms: i32 = 0
    validate_only: bool = False


class CreatePartitionsTopicResult(Struct):
    name: str = ""
    error_code: i16 = 0
    error_message: str | None = None


class CreatePartitionsResponse(Response):
    throttle_time_ms: i32 = 0
    results: list[CreatePartitionsTopicResult] = []
