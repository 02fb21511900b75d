"""ListOffsets: the offset of a timestamp, or of a log's ends."""

from typing import Annotated

from ottla.wire.fields import Request, Response, Struct, i8, i16, i32, i64, not_ignorable, since, until


class ListOffsetsPartition(Struct):
    partition_index: i32 = 0
    current_leader_epoch: Annotated[i32, since(4)] = -1
    timestamp: i64 = 0
    max_num_offsets: Annotated[i32, until(0), not_ignorable] = 1


class ListOffsetsTopic(Struct):
    name: str = ""
    partitions: list[ListOffsetsPartition] = []


class ListOffsetsRequest(Request):
    replica_id: i32 = 0
    isolation_level: Annotated[i8, since(2), not_ignorable] = 0
    topics: list[ListOffsetsTopic] = []


class ListOffsetsPartitionResponse(Struct):
    partition_index: i32 = 0
    error_code: i16 = 0
    old_style_offsets: Annotated[tuple[i64, ...], until(0)] = ()
    timestamp: Annotated[i64, since(1)] = -1
    offset: Annotated[i64, since(1)] = -1
    leader_epoch: Annotated[i32, since(4)] = -1


class ListOffsetsTopicResponse(Struct):
    name: str = ""
    partitions: list[ListOffsetsPartitionResponse] = []


class ListOffsetsResponse(Response):
    throttle_time_ms: Annotated[i32, since(2)] = 0
    topics: list[ListOffsetsTopicResponse] = []
