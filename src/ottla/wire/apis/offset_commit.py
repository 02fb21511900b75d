"""OffsetCommit: a group stores how far it has read."""

from typing import Annotated

from ottla.wire.fields import Request, Response, Struct, between, i16, i32, i64, not_ignorable, since


class OffsetCommitRequestPartition(Struct):
    partition_index: i32 = 0
    committed_offset: i64 = 0
    committed_leader_epoch: Annotated[i32, since(6)] = -1
    commit_timestamp: Annotated[i64, between(1, 1), not_ignorable] = -1
    committed_metadata: str | None = ""


class OffsetCommitRequestTopic(Struct):
    name: str = ""
    partitions: list[OffsetCommitRequestPartition] = []


class OffsetCommitRequest(Request):
    group_id: str = ""
    generation_id_or_member_epoch: Annotated[i32, since(1)] = -1
    member_id: Annotated[str, since(1)] = ""
    group_instance_id: Annotated[str | None, since(7), not_ignorable] = None
    retention_time_ms: Annotated[i64, between(2, 4)] = -1
    topics: list[OffsetCommitRequestTopic] = []


class OffsetCommitResponsePartition(Struct):
    partition_index: i32 = 0
    error_code: i16 = 0


class OffsetCommitResponseTopic(Struct):
    name: str = ""
    partitions: list[OffsetCommitResponsePartition] = []


class OffsetCommitResponse(Response):
    throttle_time_ms: Annotated[i32, since(3)] = 0
    topics: list[OffsetCommitResponseTopic] = []
