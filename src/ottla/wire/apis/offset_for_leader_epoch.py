"""OffsetForLeaderEpoch: where a leader epoch ended in the leader's log."""

from typing import Annotated

from ottla.wire.fields import Request, Response, Struct, i16, i32, i64, since


class OffsetForLeaderPartition(Struct):
    partition: i32 = 0
    current_leader_epoch: Annotated[i32, since(2)] = -1
    leader_epoch: i32 = 0


class OffsetForLeaderTopic(Struct):
    topic: str = ""
    partitions: list[OffsetForLeaderPartition] = []


class OffsetForLeaderEpochRequest(Request):
    replica_id: Annotated[i32, since(3)] = -2
    topics: list[OffsetForLeaderTopic] = []


class EpochEndOffset(Struct):
    error_code: i16 = 0
    partition: i32 = 0
    leader_epoch: Annotated[i32, since(1)] = -1
    end_offset: i64 = -1


class OffsetForLeaderTopicResult(Struct):
    topic: str = ""
    partitions: list[EpochEndOffset] = []


class OffsetForLeaderEpochResponse(Response):
    throttle_time_ms: Annotated[i32, since(2)] = 0
    topics: list[OffsetForLeaderTopicResult] = []
