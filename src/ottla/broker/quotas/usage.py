"""One kind of quota: what is set, and what its clients have used of it."""

from collections.abc import Callable, Iterator
from typing import Final, Generic, TypeVar

from ottla.security.quotas.rates import Windows
from ottla.security.quotas.table import Entity, Holding, QuotaTable

M = TypeVar("M")

CLIENTS_MAX: Final = 10_000
"""How many clients are remembered before those that were silent are forgotten."""


class Usage(Generic[M]):
    """What those who share one quota have used of it."""

    __slots__ = ("holding", "last_ms", "meter", "throttle_ms", "told_ms")

    def __init__(self, holding: Holding, meter: M) -> None:
        self.holding = holding
        self.meter = meter
        self.last_ms = 0
        self.throttle_ms = 0
        """How long the last answer told them to wait."""
        self.told_ms: int | None = None
        """When the log named them last."""


class Metered(Generic[M]):
    """Finds the quota of a client, and what was used of it."""

    def __init__(self, key: str, make_meter: Callable[[Windows], M], windows: Windows) -> None:
        self.key = key
        self._table = QuotaTable()
        self._make_meter = make_meter
        self._windows = windows
        self._by_client: dict[tuple[str, str], Usage[M] | None] = {}
        self._shared: dict[tuple[str, str], Usage[M]] = {}

    def __bool__(self) -> bool:
        return bool(self._table)

    def __iter__(self) -> Iterator[Usage[M]]:
        return iter(self._shared.values())

    def set(self, entity: Entity, limit: float | None) -> None:
        """A quota changed; what was used stays counted."""
        if self._table.set(entity, limit):
            self._by_client.clear()

    def of(self, user: str, client: str, now_ms: int) -> Usage[M] | None:
        """The use that counts for this client; None if it has no quota."""
        if not self._table:
            return None
        try:
            usage = self._by_client[user, client]
        except KeyError:
            usage = self._find(user, client, now_ms)
        if usage is not None:
            usage.last_ms = now_ms
        return usage

    def _find(self, user: str, client: str, now_ms: int) -> Usage[M] | None:
        if len(self._by_client) >= CLIENTS_MAX:
            self._forget_silent(now_ms)
        holding = self._table.holding(user, client)
        usage = None
        if holding is not None:
            shared = (holding.user, holding.client)
            usage = self._shared.get(shared)
            if usage is None:
                usage = self._shared[shared] = Usage(holding, self._make_meter(self._windows))
            usage.holding = holding
        self._by_client[user, client] = usage
        return usage

    def _forget_silent(self, now_ms: int) -> None:
        """Whoever has not come for as long as all windows reach may begin anew."""
        span_ms = self._windows.number * self._windows.size_ms
        self._by_client.clear()
        self._shared = {
            shared: usage for shared, usage in self._shared.items() if now_ms - usage.last_ms < 2 * span_ms
        }
