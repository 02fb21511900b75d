"""UpdateMetadata 0-8: the controller tells what the cluster looks like; brokers replace, partitions merge."""

import logging
from collections.abc import Iterator

from ottla.broker.apis.control.fences import fence
from ottla.broker.clients.request import Request
from ottla.broker.metadata.gone_topics import Told
from ottla.broker.metadata.image import LiveBroker, MetadataUpdate, PartitionInfo, PartitionUpdate
from ottla.broker.node import Node
from ottla.broker.runtime.tasks import Steps
from ottla.model.cluster import Endpoint, SecurityProtocol
from ottla.model.errors import ErrorCode, MalformedRequest
from ottla.model.ids import ZERO_TOPIC_ID, BrokerId, LeaderEpoch, TopicId, TopicPartition
from ottla.wire.apis.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)

log = logging.getLogger(__name__)


def handle(node: Node, request: Request, body: UpdateMetadataRequest) -> None:
    """Take the news in after what was ordered before, perhaps by the last controller: news of a partition
    that moved on must find it where an older order has put it."""
    update = MetadataUpdate(
        controller=BrokerId(max(body.controller_id, -1)),
        brokers={
            BrokerId(broker.id): _live_broker(broker, request.api_version) for broker in body.live_brokers
        },
        partitions=list(_partitions(body)),
    )
    node.control_requests.put(_obey(node, request, body, update), request)


def _obey(node: Node, request: Request, body: UpdateMetadataRequest, update: MetadataUpdate) -> Steps[None]:
    """A fence may stop it."""
    yield from ()
    error = fence(node, body.controller_epoch, body.broker_epoch, body.is_kraft_controller)
    if error is not ErrorCode.NONE:
        log.warning(
            "update metadata refused error=%s controller=%d epoch=%d broker_epoch=%d",
            error.name,
            body.controller_id,
            body.controller_epoch,
            body.broker_epoch,
        )
        request.reply(UpdateMetadataResponse(error_code=error))
        return
    node.gone_topics.on_update(Told(body.broker_epoch, body.controller_epoch), update)
    node.apply_metadata(update)
    request.reply(UpdateMetadataResponse(error_code=ErrorCode.NONE))


def _live_broker(broker: UpdateMetadataBroker, version: int) -> LiveBroker:
    if version == 0:
        endpoints = [Endpoint("PLAINTEXT", broker.v0_host, broker.v0_port)]
    else:
        endpoints = [
            _endpoint(endpoint.listener, endpoint.host, endpoint.port, endpoint.security_protocol)
            for endpoint in broker.endpoints
        ]
    rack = broker.rack if version >= 2 else None
    return LiveBroker(BrokerId(broker.id), {endpoint.listener: endpoint for endpoint in endpoints}, rack)


def _endpoint(listener: str, host: str, port: int, protocol: int) -> Endpoint:
    """Before version 3 a listener had its protocol's name."""
    try:
        security = SecurityProtocol(protocol)
    except ValueError:
        raise MalformedRequest(f"security protocol {protocol} is none") from None
    return Endpoint(listener or security.name, host, port, security)


def _partitions(body: UpdateMetadataRequest) -> Iterator[PartitionUpdate]:
    for state in body.ungrouped_partition_states:
        yield PartitionUpdate(
            TopicPartition(state.topic_name, state.partition_index), ZERO_TOPIC_ID, _info(state)
        )
    for topic in body.topic_states:
        topic_id = TopicId(topic.topic_id)
        for state in topic.partition_states:
            yield PartitionUpdate(
                TopicPartition(topic.topic_name, state.partition_index), topic_id, _info(state)
            )


def _info(state: UpdateMetadataPartitionState) -> PartitionInfo:
    return PartitionInfo(
        BrokerId(state.leader),
        LeaderEpoch(state.leader_epoch),
        state.isr,  # type: ignore[arg-type]  # the wire's tuple of ints is a tuple of broker ids
        state.zk_version,
        state.replicas,  # type: ignore[arg-type]
        state.offline_replicas,  # type: ignore[arg-type]
        state.controller_epoch,
    )
