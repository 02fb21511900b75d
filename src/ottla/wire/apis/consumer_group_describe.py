"""ConsumerGroupDescribe: state and members of groups of the newer protocol."""

from typing import ClassVar

import msgspec

from ottla.wire.fields import Request, Response, Spec, Struct, i16, i32, uuid
from ottla.wire.keys import ApiKey
from ottla.wire.primitives import ZERO_UUID


class ConsumerGroupDescribeRequest(Request):
    spec: ClassVar[Spec] = Spec(versions=(0, 0), flexible=0, api_key=ApiKey.CONSUMER_GROUP_DESCRIBE)

    group_ids: tuple[str, ...] = ()
    include_authorized_operations: bool = False


class TopicPartitions(Struct):
    topic_id: uuid = ZERO_UUID
    topic_name: str = ""
    partitions: tuple[i32, ...] = ()


class Assignment(Struct):
    topic_partitions: list[TopicPartitions] = []


class Member(Struct):
    member_id: str = ""
    instance_id: str | None = None
    rack_id: str | None = None
    member_epoch: i32 = 0
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: tuple[str, ...] = ()
    subscribed_topic_regex: str | None = None
    assignment: Assignment = msgspec.field(default_factory=Assignment)
    target_assignment: Assignment = msgspec.field(default_factory=Assignment)


class DescribedGroup(Struct):
    error_code: i16 = 0
    error_message: str | None = None
    group_id: str = ""
    group_state: str = ""
    group_epoch: i32 = 0
    assignment_epoch: i32 = 0
    assignor_name: str = ""
    members: list[Member] = []
    authorized_operations: i32 = -0x8000_0000


class ConsumerGroupDescribeResponse(Response):
    spec: ClassVar[Spec] = Spec(versions=(0, 0), flexible=0, api_key=ApiKey.CONSUMER_GROUP_DESCRIBE)

    throttle_time_ms: i32 = 0
    groups: list[DescribedGroup] = []
