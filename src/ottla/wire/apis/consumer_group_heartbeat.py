"""ConsumerGroupHeartbeat: membership in a group of the newer protocol."""

from typing import ClassVar

from ottla.wire.fields import Request, Response, Spec, Struct, i16, i32, uuid
from ottla.wire.keys import ApiKey
from ottla.wire.primitives import ZERO_UUID


class TopicPartitions(Struct):
    topic_id: uuid = ZERO_UUID
    partitions: tuple[i32, ...] = ()


class ConsumerGroupHeartbeatRequest(Request):
    spec: ClassVar[Spec] = Spec(versions=(0, 0), flexible=0, api_key=ApiKey.CONSUMER_GROUP_HEARTBEAT)

    group_id: str = ""
    member_id: str = ""
    member_epoch: i32 = 0
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: i32 = -1
    subscribed_topic_names: tuple[str, ...] | None = None
    server_assignor: str | None = None
    topic_partitions: list[TopicPartitions] | None = None


class Assignment(Struct):
    topic_partitions: list[TopicPartitions] = []


class ConsumerGroupHeartbeatResponse(Response):
    spec: ClassVar[Spec] = Spec(versions=(0, 0), flexible=0, api_key=ApiKey.CONSUMER_GROUP_HEARTBEAT)

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: i32 = 0
    heartbeat_interval_ms: i32 = 0
    assignment: Assignment | None = None
