"""DeleteRecords: a log's start moves up."""

from ottla.wire.fields import Request, Response, Struct, i16, i32, i64


class DeleteRecordsPartition(Struct):
    partition_index: i32 = 0
    offset: i64 = 0


class DeleteRecordsTopic(Struct):
    name: str = ""
    partitions: list[DeleteRecordsPartition] = []


class DeleteRecordsRequest(Request):
    topics: list[DeleteRecordsTopic] = []
    timeout_ms: i32 = 0


class DeleteRecordsPartitionResult(Struct):
    partition_index: i32 = 0
    low_watermark: i64 = 0
    error_code: i16 = 0


class DeleteRecordsTopicResult(Struct):
    name: str = ""
    partitions: list[DeleteRecordsPartitionResult] = []


class DeleteRecordsResponse(Response):
    throttle_time_ms: i32 = 0
    topics: list[DeleteRecordsTopicResult] = []
