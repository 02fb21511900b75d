"""DeleteRecords: a log's start moves up."""

from typing import ClassVar

from ottla.wire.fields import Request, Response, Spec, Struct, i16, i32, i64
from ottla.wire.keys import ApiKey


class DeleteRecordsPartition(Struct):
    partition_index: i32 = 0
    offset: i64 = 0


class DeleteRecordsTopic(Struct):
    name: str = ""
    partitions: list[DeleteRecordsPartition] = []


class DeleteRecordsRequest(Request):
    spec: ClassVar[Spec] = Spec(versions=(0, 2), flexible=2, api_key=ApiKey.DELETE_RECORDS)

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
    spec: ClassVar[Spec] = Spec(versions=(0, 2), flexible=2, api_key=ApiKey.DELETE_RECORDS)

    throttle_time_ms: i32 = 0
    topics: list[DeleteRecordsTopicResult] = []
