"""OffsetFetch: a group asks how far it had read."""

from typing import Annotated

from ottla.wire.fields import (
    Request,
    Response,
    Struct,
    between,
    i16,
    i32,
    i64,
    not_ignorable,
    nullable,
    since,
    until,
)


class OffsetFetchRequestTopic(Struct):
    name: str = ""
    partition_indexes: tuple[i32, ...] = ()


class OffsetFetchRequestTopics(Struct):
    name: str = ""
    partition_indexes: tuple[i32, ...] = ()


class OffsetFetchRequestGroup(Struct):
    group_id: str = ""
    member_id: Annotated[str | None, since(9)] = None
    member_epoch: Annotated[i32, since(9)] = -1
    topics: list[OffsetFetchRequestTopics] | None = []


class OffsetFetchRequest(Request):
    group_id: Annotated[str, until(7), not_ignorable] = ""
    topics: Annotated[list[OffsetFetchRequestTopic] | None, until(7), nullable(2), not_ignorable] = []
    groups: Annotated[list[OffsetFetchRequestGroup], since(8), not_ignorable] = []
    require_stable: Annotated[bool, since(7), not_ignorable] = False


class OffsetFetchResponsePartition(Struct):
    partition_index: i32 = 0
    committed_offset: i64 = 0
    committed_leader_epoch: Annotated[i32, since(5)] = -1
    metadata: str | None = ""
    error_code: i16 = 0


class OffsetFetchResponseTopic(Struct):
    name: str = ""
    partitions: list[OffsetFetchResponsePartition] = []


class OffsetFetchResponsePartitions(Struct):
    partition_index: i32 = 0
    committed_offset: i64 = 0
    committed_leader_epoch: i32 = -1
    metadata: str | None = ""
    error_code: i16 = 0


class OffsetFetchResponseTopics(Struct):
    name: str = ""
    partitions: list[OffsetFetchResponsePartitions] = []


class OffsetFetchResponseGroup(Struct):
    group_id: str = ""
    topics: list[OffsetFetchResponseTopics] = []
    error_code: i16 = 0


class OffsetFetchResponse(Response):
    throttle_time_ms: Annotated[i32, since(3)] = 0
    topics: Annotated[list[OffsetFetchResponseTopic], until(7)] = []
    error_code: Annotated[i16, between(2, 7)] = 0
    groups: Annotated[list[OffsetFetchResponseGroup], since(8)] = []
