"""FindCoordinator 0-6: the broker that leads the key's partition of the offsets topic."""

import logging
from typing import TYPE_CHECKING

from ottla.broker import topic_names
from ottla.broker.config_resources import MALFORMED
from ottla.broker.request import Request
from ottla.model.cluster import Endpoint
from ottla.model.errors import ErrorCode
from ottla.model.ids import BrokerId, TopicPartition
from ottla.model.spread import coordinating_partition
from ottla.wire.apis.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

if TYPE_CHECKING:
    from ottla.broker.node import Node

log = logging.getLogger(__name__)

GROUP = 0
TRANSACTION = 1
SHARE = 2
SHARE_SINCE = 6
NO_TRANSACTIONS = (
    "Ottla does not coordinate transactions yet: set no transactional.id,"
    " and with Kafka Streams processing.guarantee=at_least_once"
)


def handle(node: "Node", request: Request, body: FindCoordinatorRequest) -> FindCoordinatorResponse:
    """One coordinator up to version 3, one a key from version 4 on."""
    keys = body.coordinator_keys if request.api_version >= 4 else (body.key,)
    found = [_find(node, request, body.key_type, key) for key in keys]
    if request.api_version >= 4:
        for row in found:
            if row.error_code == ErrorCode.NONE:
                row.error_message = ""
        return FindCoordinatorResponse(coordinators=found)
    return FindCoordinatorResponse(
        error_code=found[0].error_code,
        error_message=found[0].error_message,
        node_id=found[0].node_id,
        host=found[0].host,
        port=found[0].port,
    )


def _find(node: "Node", request: Request, key_type: int, key: str) -> Coordinator:
    if key_type == GROUP:
        return _find_group(node, request, key)
    if key_type == TRANSACTION:
        return _find_transaction(node, request, key)
    if key_type == SHARE and request.api_version >= SHARE_SINCE:
        return _nobody(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return _nobody(key, ErrorCode.INVALID_REQUEST, MALFORMED)


def _find_transaction(node: "Node", request: Request, transactional_id: str) -> Coordinator:
    """Another broker may coordinate it; we do not, and say so once and for all.

    Of the errors that every client takes for final this is the one with which Java's and librdkafka show our
    words to their user; TRANSACTIONAL_ID_AUTHORIZATION_FAILED, which is nearer, speaks of rights alone.
    """
    topic = node.metadata.topics.get(topic_names.TRANSACTIONS_TOPIC)
    if topic is not None:
        info = topic.partitions.get(coordinating_partition(transactional_id, len(topic.partitions)))
        endpoint = node.metadata.endpoint(info.leader, request.listener) if info is not None else None
        if info is None or endpoint is None:
            return _nobody(transactional_id, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if info.leader != node.broker_id:
            return _somebody(transactional_id, info.leader, endpoint)
    log.warning(
        "transactions are not coordinated by this broker transactional_id=%s client=%s",
        transactional_id,
        request.client_host,
    )
    return _nobody(transactional_id, ErrorCode.CLUSTER_AUTHORIZATION_FAILED, NO_TRANSACTIONS)


def _find_group(node: "Node", request: Request, group: str) -> Coordinator:
    offsets_topic = node.metadata.topics.get(topic_names.OFFSETS_TOPIC)
    if offsets_topic is None:
        node.topic_creation.create_offsets_topic()
        return _nobody(group, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    partition = coordinating_partition(group, len(offsets_topic.partitions))
    info = node.metadata.partition(TopicPartition(topic_names.OFFSETS_TOPIC, partition))
    endpoint = node.metadata.endpoint(info.leader, request.listener) if info is not None else None
    if info is None or endpoint is None or (info.leader == node.broker_id and node.is_untold):
        return _nobody(group, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return _somebody(group, info.leader, endpoint)


def _somebody(key: str, broker: BrokerId, endpoint: Endpoint) -> Coordinator:
    return Coordinator(
        key=key,
        node_id=broker,
        host=endpoint.host,
        port=endpoint.port,
        error_code=ErrorCode.NONE,
        error_message="NONE",
    )


def _nobody(key: str, error: ErrorCode, message: str | None = None) -> Coordinator:
    return Coordinator(key=key, node_id=-1, host="", port=-1, error_code=error, error_message=message)
