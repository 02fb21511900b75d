"""What the client of one request may do."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Protocol, TypeAlias

from ottla.broker.access.authorizer import Authorizer, tell
from ottla.security.acls.kinds import CLUSTER_NAME, Operation, Resource, ResourceType
from ottla.security.principal import Principal
from ottla.wire.keys import ApiKey

Right: TypeAlias = tuple[ResourceType, Operation]
"""To do that to something of that type."""


def parse_rights(text: str) -> tuple[Right, ...]:
    """``Topic Write, Cluster Create or Topic Create``: words as log lines have them."""
    words = [right.split() for right in text.replace(" or ", ",").split(",") if right.strip()]
    return tuple((_TYPES[kind], _OPERATIONS[operation]) for kind, operation in words)


_TYPES = {kind.title: kind for kind in ResourceType}
_OPERATIONS = {operation.title: operation for operation in Operation}


class Origin(Protocol):
    """A request: who asks, from where, and for what."""

    api_key: int

    @property
    def principal(self) -> Principal: ...

    @property
    def client_host(self) -> str: ...


class Access:
    """Asks the authorizer in the name of a request's client; what is asked stands in the API's row."""

    __slots__ = ("_authorizer", "_request", "_rights")

    def __init__(self, authorizer: Authorizer, request: Origin, rights: Sequence[Right]) -> None:
        self._authorizer = authorizer
        self._request = request
        self._rights = rights

    def topic(self, name: str, operation: Operation | None = None) -> bool:
        """Whether the API's right to that topic is there, or the one that is named."""
        return self._may(ResourceType.TOPIC, name, operation)

    def topics(
        self, names: Iterable[str], operation: Operation | None = None, *, is_quiet: bool = False
    ) -> set[str]:
        """Those of the topics to which the right is there."""
        counts = Counter(names)
        kind = ResourceType.TOPIC
        return {
            name
            for name, count in counts.items()
            if self._may(kind, name, operation, count=count, is_quiet=is_quiet)
        }

    def group(self, name: str) -> bool:
        return self._may(ResourceType.GROUP, name)

    def transaction(self, transactional_id: str) -> bool:
        return self._may(ResourceType.TRANSACTIONAL_ID, transactional_id)

    def cluster(self, operation: Operation | None = None, *, is_quiet: bool = False) -> bool:
        """Quiet is a question whose no is no refusal yet."""
        return self._may(ResourceType.CLUSTER, CLUSTER_NAME, operation, is_quiet=is_quiet)

    def any_topic(self) -> bool:
        """Whether there can be a topic to which the API's right is there."""
        operation = self._operation(ResourceType.TOPIC, None)
        request = self._request
        principal, host = request.principal, request.client_host
        is_allowed = self._authorizer.may_any(principal, host, operation, ResourceType.TOPIC)
        self._tell(operation, Resource(ResourceType.TOPIC, "NONE"), 1, is_allowed=is_allowed)
        return is_allowed

    def operations(self, kind: ResourceType, name: str) -> int:
        """The bits that ``include-authorized-operations`` asks for."""
        request = self._request
        return self._authorizer.operations(request.principal, request.client_host, kind, name)

    def cluster_operations(self) -> int:
        """The same of the cluster."""
        return self._authorizer.cluster_operations(self._request.principal, self._request.client_host)

    def _operation(self, kind: ResourceType, operation: Operation | None) -> Operation:
        """A question that the row does not announce is a mistake of ours."""
        for right, known in self._rights:
            if right is kind and operation in (None, known):
                return known
        raise AssertionError(f"the API's row has no right to {kind.name} {operation}")

    def _may(
        self,
        kind: ResourceType,
        name: str,
        operation: Operation | None = None,
        *,
        count: int = 1,
        is_quiet: bool = False,
    ) -> bool:
        operation = self._operation(kind, operation)
        request = self._request
        is_allowed = self._authorizer.may(request.principal, request.client_host, operation, kind, name)
        if is_allowed or not is_quiet:
            self._tell(operation, Resource(kind, name), count, is_allowed=is_allowed)
        return is_allowed

    def _tell(self, operation: Operation, resource: Resource, count: int, *, is_allowed: bool) -> None:
        request = self._request
        api = ApiKey(request.api_key).spelling
        tell(
            request.principal,
            request.client_host,
            operation,
            resource,
            api,
            count=count,
            is_allowed=is_allowed,
        )
