"""TxnOffsetCommit: offsets that count once their transaction commits."""

from typing import Annotated

from ottla.wire.fields import Request, Response, Struct, i16, i32, i64, not_ignorable, since


class TxnOffsetCommitRequestPartition(Struct):
    partition_index: i32 = 0
    committed_offset: i64 = 0
    committed_leader_epoch: Annotated[i32, since(2)] = -1
    committed_metadata: str | None = ""


class TxnOffsetCommitRequestTopic(Struct):
    name: str = ""
    partitions: list[TxnOffsetCommitRequestPartition] = []


class TxnOffsetCommitRequest(Request):
    transactional_id: str = ""
    group_id: str = ""
    producer_id: i64 = 0
    producer_epoch: i16 = 0
    generation_id: Annotated[i32, since(3), not_ignorable] = -1
    member_id: Annotated[str, since(3), not_ignorable] = ""
    group_instance_id: Annotated[str | None, since(3), not_ignorable] = None
    topics: list[TxnOffsetCommitRequestTopic] = []


class TxnOffsetCommitResponsePartition(Struct):
    partition_index: i32 = 0
    error_code: i16 = 0


class TxnOffsetCommitResponseTopic(Struct):
    name: str = ""
    partitions: list[TxnOffsetCommitResponsePartition] = []


class TxnOffsetCommitResponse(Response):
    throttle_time_ms: i32 = 0
    topics: list[TxnOffsetCommitResponseTopic] = []
