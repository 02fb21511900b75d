"""OffsetDelete: a group forgets offsets."""

from typing import ClassVar

from ottla.wire.fields import Request, Response, Spec, Struct, i16, i32
from ottla.wire.keys import ApiKey


class OffsetDeleteRequestPartition(Struct):
    partition_index: i32 = 0


class OffsetDeleteRequestTopic(Struct):
    name: str = ""
    partitions: list[OffsetDeleteRequestPartition] = []


class OffsetDeleteRequest(Request):
    spec: ClassVar[Spec] = Spec(versions=(0, 0), flexible=None, api_key=ApiKey.OFFSET_DELETE)

    group_id: str = ""
    topics: list[OffsetDeleteRequestTopic] = []


class OffsetDeleteResponsePartition(Struct):
    partition_index: i32 = 0
    error_code: i16 = 0


class OffsetDeleteResponseTopic(Struct):
    name: str = ""
    partitions: list[OffsetDeleteResponsePartition] = []


class OffsetDeleteResponse(Response):
    spec: ClassVar[Spec] = Spec(versions=(0, 0), flexible=None, api_key=ApiKey.OFFSET_DELETE)

    error_code: i16 = 0
    throttle_time_ms: i32 = 0
    topics: list[OffsetDeleteResponseTopic] = []
