"""The quotas that are set, and which of them holds for a client."""

from collections.abc import Mapping
from typing import Final, NamedTuple

DEFAULT: Final = "<default>"
"""Stands for all users, clients or addresses without a quota of their own."""

PRODUCE: Final = "producer_byte_rate"
FETCH: Final = "consumer_byte_rate"
REQUEST: Final = "request_percentage"
MUTATIONS: Final = "controller_mutation_rate"
CONNECTIONS: Final = "connection_creation_rate"
CLIENT_KEYS: Final = (PRODUCE, FETCH, REQUEST, MUTATIONS)


class Entity(NamedTuple):
    """Whom a quota is for: a user, a client id, or both. Names are as their znodes have them."""

    user: str | None
    client: str | None


class Holding(NamedTuple):
    """The quota that holds, and who uses it up together: an empty name stands for everybody's."""

    limit: float
    user: str
    client: str


class QuotaTable:
    """All quotas of one kind."""

    __slots__ = ("_limits",)

    def __init__(self) -> None:
        self._limits: dict[Entity, float] = {}

    def __bool__(self) -> bool:
        return bool(self._limits)

    def set(self, entity: Entity, limit: float | None) -> bool:
        """Set a quota, or with None remove it; whether that changed anything."""
        before = self._limits.get(entity)
        if limit is None:
            self._limits.pop(entity, None)
        else:
            self._limits[entity] = limit
        return before != limit

    def holding(self, user: str, client: str) -> Holding | None:
        """The quota of a client, in Kafka's order: the more specific first."""
        limits = self._limits
        if not limits:
            return None
        user_shared, client_shared = self._shared_by(user, client)
        limit = next(
            (limits[each] for each in _candidates(user_shared, client_shared) if each in limits), None
        )
        return None if limit is None else Holding(limit, user_shared, client_shared)

    def _shared_by(self, user: str, client: str) -> tuple[str, str]:
        """Whose use is counted together."""
        limits = self._limits
        if Entity(user, client) in limits or Entity(user, DEFAULT) in limits:
            return user, client
        if Entity(user, None) in limits:
            return user, ""
        if Entity(DEFAULT, client) in limits or Entity(DEFAULT, DEFAULT) in limits:
            return user, client
        return (user, "") if Entity(DEFAULT, None) in limits else ("", client)


def _candidates(user: str, client: str) -> list[Entity]:
    """The quotas that may hold, the more specific first. A client without an id has none of clients'."""
    if user and client:
        return [Entity(u, c) for u in (user, DEFAULT) for c in (client, DEFAULT)]
    if user:
        return [Entity(user, None), Entity(DEFAULT, None)]
    return [Entity(None, client), Entity(None, DEFAULT)] if client else []


def parse(kind: str, config: Mapping[str, str]) -> tuple[dict[str, float], list[str]]:
    """The quotas among an entity's settings, and the names of those that nobody can read."""
    limits: dict[str, float] = {}
    unreadable = []
    for key in (CONNECTIONS,) if kind == "ips" else CLIENT_KEYS:
        if key in config:
            try:
                limits[key] = float(config[key])
            except ValueError:
                unreadable.append(key)
    return limits, unreadable
