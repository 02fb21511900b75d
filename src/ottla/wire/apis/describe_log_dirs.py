"""DescribeLogDirs: what lies in a broker's log directories."""

from typing import Annotated

from ottla.wire.fields import Request, Response, Struct, i16, i32, i64, since


class DescribableLogDirTopic(Struct):
    topic: str = ""
    partitions: tuple[i32, ...] = ()


class DescribeLogDirsRequest(Request):
    topics: list[DescribableLogDirTopic] | None = []


class DescribeLogDirsPartition(Struct):
    partition_index: i32 = 0
    partition_size: i64 = 0
    offset_lag: i64 = 0
    is_future_key: bool = False


class DescribeLogDirsTopic(Struct):
    name: str = ""
    partitions: list[DescribeLogDirsPartition] = []


class DescribeLogDirsResult(Struct):
    error_code: i16 = 0
    log_dir: str = ""
    topics: list[DescribeLogDirsTopic] = []
    total_bytes: Annotated[i64, since(4)] = -1
    usable_bytes: Annotated[i64, since(4)] = -1


class DescribeLogDirsResponse(Response):
    throttle_time_ms: i32 = 0
    error_code: Annotated[i16, since(3)] = 0
    results: list[DescribeLogDirsResult] = []
