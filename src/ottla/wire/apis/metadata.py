"""Metadata: the brokers, and who leads which partition."""

from typing import Annotated

from ottla.wire.fields import (
    Request,
    Response,
    Struct,
    between,
    i16,
    i32,
    not_ignorable,
    nullable,
    since,
    uuid,
)
from ottla.wire.primitives import ZERO_UUID


class MetadataRequestTopic(Struct):
    topic_id: Annotated[uuid, since(10)] = ZERO_UUID
    name: Annotated[str | None, nullable(10)] = ""


class MetadataRequest(Request):
    topics: Annotated[list[MetadataRequestTopic] | None, nullable(1)] = []
    allow_auto_topic_creation: Annotated[bool, since(4), not_ignorable] = True
    include_cluster_authorized_operations: Annotated[bool, between(8, 10), not_ignorable] = False
    include_topic_authorized_operations: Annotated[bool, since(8), not_ignorable] = False


class MetadataResponseBroker(Struct):
    node_id: i32 = 0
    host: str = ""
    port: i32 = 0
    rack: Annotated[str | None, since(1)] = None


class MetadataResponsePartition(Struct):
    error_code: i16 = 0
    partition_index: i32 = 0
    leader_id: i32 = 0
    leader_epoch: Annotated[i32, since(7)] = -1
    replica_nodes: tuple[i32, ...] = ()
    isr_nodes: tuple[i32, ...] = ()
    offline_replicas: Annotated[tuple[i32, ...], since(5)] = ()


class MetadataResponseTopic(Struct):
    error_code: i16 = 0
    name: Annotated[str | None, nullable(12)] = ""
    topic_id: Annotated[uuid, since(10)] = ZERO_UUID
    is_internal: Annotated[bool, since(1)] = False
    partitions: list[MetadataResponsePartition] = []
    topic_authorized_operations: Annotated[i32, since(8)] = -0x8000_0000


class MetadataResponse(Response):
    throttle_time_ms: Annotated[i32, since(3)] = 0
    brokers: list[MetadataResponseBroker] = []
    cluster_id: Annotated[str | None, since(2)] = None
    controller_id: Annotated[i32, since(1)] = -1
    topics: list[MetadataResponseTopic] = []
    cluster_authorized_operations: Annotated[i32, between(8, 10)] = -0x8000_0000
