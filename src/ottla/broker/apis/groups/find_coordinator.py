"""FindCoordinator 0-6: the broker that leads the key's partition of the coordinator's topic."""

from ottla.broker.clients.request import Request
from ottla.broker.node import Node
from ottla.broker.settings.resources import MALFORMED
from ottla.model.cluster import Endpoint
from ottla.model.errors import ErrorCode
from ottla.model.ids import BrokerId
from ottla.model.internal_topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from ottla.model.spread import coordinating_partition
from ottla.wire.apis.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

GROUP = 0
TRANSACTION = 1
SHARE = 2
SHARE_SINCE = 6
UNAVAILABLE = "The coordinator is not available."
"""Said up to version 3, as in Kafka."""


def handle(node: Node, request: Request, body: FindCoordinatorRequest) -> FindCoordinatorResponse:
    """One coordinator up to version 3, one a key from version 4 on."""
    keys = body.coordinator_keys if request.api_version >= 4 else (body.key,)
    found = [_find(node, request, body.key_type, key) for key in keys]
    if request.api_version >= 4:
        for row in found:
            if row.error_code == ErrorCode.NONE or row.error_message == UNAVAILABLE:
                row.error_message = ""
        return FindCoordinatorResponse(coordinators=found)
    return FindCoordinatorResponse(
        error_code=found[0].error_code,
        error_message=found[0].error_message,
        node_id=found[0].node_id,
        host=found[0].host,
        port=found[0].port,
    )


def _find(node: Node, request: Request, key_type: int, key: str) -> Coordinator:
    if key_type == GROUP:
        return _find_leader(node, request, OFFSETS_TOPIC, key)
    if key_type == TRANSACTION:
        return _find_leader(node, request, TRANSACTIONS_TOPIC, key)
    if key_type == SHARE and request.api_version >= SHARE_SINCE:
        return _nobody(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, UNAVAILABLE)
    return _nobody(key, ErrorCode.INVALID_REQUEST, MALFORMED)


def _find_leader(node: Node, request: Request, topic: str, key: str) -> Coordinator:
    """The topic is created when the first client needs it."""
    known = node.metadata.topics.get(topic)
    if known is None:
        node.topic_creation.create_internal(topic)
        return _nobody(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, UNAVAILABLE)
    info = known.partitions.get(coordinating_partition(key, len(known.partitions)))
    endpoint = node.metadata.endpoint(info.leader, request.listener) if info is not None else None
    if info is None or endpoint is None or (info.leader == node.broker_id and node.identity.is_untold):
        return _nobody(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, UNAVAILABLE)
    return _somebody(key, info.leader, endpoint)


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
