"""CreateTopics: new topics, placed by the broker or by hand."""

from typing import Annotated

from ottla.wire.fields import Request, Response, Struct, i8, i16, i32, not_ignorable, since, tag, uuid
from ottla.wire.primitives import ZERO_UUID


class CreatableReplicaAssignment(Struct):
    partition_index: i32 = 0
    broker_ids: tuple[i32, ...] = ()


class CreatableTopicConfig(Struct):
    name: str = ""
    value: str | None = ""


class CreatableTopic(Struct):
    name: str = ""
    num_partitions: i32 = 0
    replication_factor: i16 = 0
    assignments: list[CreatableReplicaAssignment] = []
    configs: list[CreatableTopicConfig] = []


class CreateTopicsRequest(Request):
    topics: list[CreatableTopic] = []
    timeout_ms: i32 = 60_000
    validate_only: Annotated[bool, since(1), not_ignorable] = False


class CreatableTopicConfigs(Struct):
    name: str = ""
    value: str | None = ""
    read_only: bool = False
    config_source: i8 = -1
    is_sensitive: bool = False


class CreatableTopicResult(Struct):
    name: str = ""
    topic_id: Annotated[uuid, since(7)] = ZERO_UUID
    error_code: i16 = 0
    error_message: Annotated[str | None, since(1)] = ""
    topic_config_error_code: Annotated[i16, since(5), tag(0)] = 0
    num_partitions: Annotated[i32, since(5)] = -1
    replication_factor: Annotated[i16, since(5)] = -1
    configs: Annotated[list[CreatableTopicConfigs] | None, since(5)] = []


class CreateTopicsResponse(Response):
    throttle_time_ms: Annotated[i32, since(2)] = 0
    topics: list[CreatableTopicResult] = []
