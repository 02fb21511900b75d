"""UpdateMetadata: the controller tells every broker what the cluster looks like."""

from typing import Annotated

from ottla.wire.fields import (
    Request,
    Response,
    Struct,
    i8,
    i16,
    i32,
    i64,
    not_ignorable,
    since,
    tag,
    until,
    uuid,
)
from ottla.wire.primitives import ZERO_UUID


class UpdateMetadataPartitionState(Struct):
    topic_name: Annotated[str, until(4)] = ""
    partition_index: i32 = 0
    controller_epoch: i32 = 0
    leader: i32 = 0
    leader_epoch: i32 = 0
    isr: tuple[i32, ...] = ()
    zk_version: i32 = 0
    replicas: tuple[i32, ...] = ()
    offline_replicas: Annotated[tuple[i32, ...], since(4)] = ()


class UpdateMetadataTopicState(Struct):
    topic_name: str = ""
    topic_id: Annotated[uuid, since(7)] = ZERO_UUID
    partition_states: list[UpdateMetadataPartitionState] = []


class UpdateMetadataEndpoint(Struct):
    port: i32 = 0
    host: str = ""
    listener: Annotated[str, since(3)] = ""
    security_protocol: i16 = 0


class UpdateMetadataBroker(Struct):
    id: i32 = 0
    v0_host: Annotated[str, until(0)] = ""
    v0_port: Annotated[i32, until(0)] = 0
    endpoints: Annotated[list[UpdateMetadataEndpoint], since(1)] = []
    rack: Annotated[str | None, since(2)] = ""


class UpdateMetadataRequest(Request):
    controller_id: i32 = 0
    is_kraft_controller: Annotated[bool, since(8), not_ignorable] = False
    type: Annotated[i8, since(8), tag(0), not_ignorable] = 0
    controller_epoch: i32 = 0
    broker_epoch: Annotated[i64, since(5)] = -1
    ungrouped_partition_states: Annotated[list[UpdateMetadataPartitionState], until(4), not_ignorable] = []
    topic_states: Annotated[list[UpdateMetadataTopicState], since(5), not_ignorable] = []
    live_brokers: list[UpdateMetadataBroker] = []


class UpdateMetadataResponse(Response):
    error_code: i16 = 0
