"""What a client may do, as bits: without an authorizer everything that the kind of resource knows."""

from ottla.broker.clients.request import Request
from ottla.security.acls.kinds import OPERATIONS, ResourceType

NOT_ASKED = -(2**31)


def _all(kind: ResourceType) -> int:
    return sum(1 << operation for operation in OPERATIONS[kind])


TOPIC = _all(ResourceType.TOPIC)
CLUSTER = _all(ResourceType.CLUSTER)
GROUP = _all(ResourceType.GROUP)


def of_cluster(request: Request, *, is_asked: bool) -> int:
    """What the client may do to the cluster, if it asks."""
    if not is_asked:
        return NOT_ASKED
    return CLUSTER if request.access is None else request.access.cluster_operations()


def of_topic(request: Request, name: str) -> int:
    """What the client may do to a topic."""
    return TOPIC if request.access is None else request.access.operations(ResourceType.TOPIC, name)
