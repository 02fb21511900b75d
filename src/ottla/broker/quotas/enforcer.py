"""Client quotas, enforced: who exceeds one is told how long to wait, and not read from meanwhile (KIP-219).

While no quota is set, connections know nothing of this: a request then costs one look at an attribute.
"""

import logging
from collections.abc import Callable
from ipaddress import ip_address
from typing import Any, Final, Protocol

from ottla.broker.quotas.usage import Metered, Usage
from ottla.broker.runtime.runtime import Runtime
from ottla.security.principal import Principal
from ottla.security.quotas.rates import Rate, TokenBucket, Windows
from ottla.security.quotas.table import (
    CLIENT_KEYS,
    CONNECTIONS,
    FETCH,
    MUTATIONS,
    PRODUCE,
    REQUEST,
    Entity,
)
from ottla.wire.keys import ApiKey

log = logging.getLogger(__name__)

TELL_MS: Final = 60_000
"""A client that is throttled is named in the log so often."""
EXEMPT: Final = frozenset(
    {
        ApiKey.LEADER_AND_ISR,
        ApiKey.STOP_REPLICA,
        ApiKey.UPDATE_METADATA,
        ApiKey.CONTROLLED_SHUTDOWN,
        ApiKey.WRITE_TXN_MARKERS,
        ApiKey.ALTER_PARTITION,
        ApiKey.ALLOCATE_PRODUCER_IDS,
    }
)
"""What brokers ask of each other uses up nobody's time."""


class ChargedRequest(Protocol):
    """What is counted of a request."""

    api_key: int
    size: int
    client_id: str | None
    began_s: float
    mutation_wait_until_ms: int

    @property
    def principal(self) -> Principal: ...


class ClientQuotas:
    """All client quotas of this broker, and what was used of them."""

    def __init__(self, runtime: Runtime, on_first: Callable[["ClientQuotas"], None]) -> None:
        """``on_first`` is called when the first quota of a client is set."""
        settings = runtime.config.quotas
        windows = Windows(settings.quota_window_num, settings.quota_window_size_seconds * 1_000)
        controller_windows = Windows(
            settings.controller_quota_window_num, settings.controller_quota_window_size_seconds * 1_000
        )
        self._clock = runtime.clock
        self.timers = runtime.timers
        self._windows = windows
        self.produce = Metered(PRODUCE, Rate, windows)
        self.fetch = Metered(FETCH, Rate, windows)
        self.request = Metered(REQUEST, Rate, windows)
        self.connections = Metered(CONNECTIONS, Rate, windows)
        self.mutations = Metered(MUTATIONS, TokenBucket, controller_windows)
        self._by_key: dict[str, Metered[Any]] = {
            each.key: each
            for each in (self.produce, self.fetch, self.request, self.connections, self.mutations)
        }
        self.now_s: Callable[[], float] = lambda: runtime.clock.monotonic_ms() / 1_000
        """A fine clock for the time that requests take; the edge has a better one."""
        self._on_first = on_first
        self.is_on = False

    # ---- what is set

    def set(self, kind: str, entity: Entity, limits: dict[str, float]) -> None:
        """The quotas of one entity, all of them."""
        if kind == "ips":
            entity = Entity(_plain(entity.user), None)
        for key in (CONNECTIONS,) if kind == "ips" else CLIENT_KEYS:
            self._by_key[key].set(entity, limits.get(key))
        if limits and kind != "ips" and not self.is_on:
            self.is_on = True
            self._on_first(self)

    # ---- what is used

    def begin(self, request: ChargedRequest) -> None:
        """A request is handled from now on."""
        request.began_s = self.now_s()

    def parked(self, request: ChargedRequest) -> None:
        """It waits: that takes no time of ours."""
        request.began_s -= self.now_s()

    def charge(self, request: ChargedRequest, is_silent: bool = False) -> int:
        """Count a request that is answered now; how many milliseconds its client must wait."""
        if request.api_key == ApiKey.FETCH:
            return 0
        now_ms = self._clock.monotonic_ms()
        wait_ms = 0 if is_silent else self._charge_time(request, now_ms)
        if request.api_key == ApiKey.PRODUCE:
            wait_ms = max(wait_ms, self._charge(self.produce, request, request.size, now_ms))
        elif request.mutation_wait_until_ms:
            wait_ms = max(wait_ms, request.mutation_wait_until_ms - now_ms)
        return wait_ms

    def charge_fetch(self, request: ChargedRequest, count: Callable[[], int]) -> int:
        """The same of a consumer's fetch. If it must wait it gets nothing, and the bytes do not count."""
        now_ms = self._clock.monotonic_ms()
        wait_ms = self._charge_time(request, now_ms)
        usage = self._usage(self.fetch, request, now_ms)
        if usage is None:
            return wait_ms
        size = count()
        usage.meter.record(size, now_ms)
        wait_ms = max(wait_ms, self._throttled(self.fetch.key, usage, now_ms))
        if wait_ms:
            usage.meter.record(-size, now_ms)
        return wait_ms

    def fetch_bytes_max(self, request: ChargedRequest) -> int | None:
        """More bytes than this would exceed the quota even of a client that was silent."""
        usage = self._usage(self.fetch, request, self._clock.monotonic_ms())
        return None if usage is None else int(min(usage.holding.limit * self._windows.burst_s, 2**31 - 1))

    def connection_wait_ms(self, host: str) -> int:
        """How long a new connection of that address is held before it is closed; 0: it may come in."""
        now_ms = self._clock.monotonic_ms()
        usage = self.connections.of(host, "", now_ms)
        if usage is None:
            return 0
        usage.meter.record(1, now_ms)
        wait_ms = self._throttled(self.connections.key, usage, now_ms)
        if wait_ms:
            usage.meter.record(-1, now_ms)
        return min(wait_ms, self._windows.size_ms)

    def may_mutate(self, request: ChargedRequest, count: int, is_strict: bool) -> bool:
        """Take so many partitions from a client's quota; a strict client that owes some takes none."""
        now_ms = self._clock.monotonic_ms()
        usage = self._usage(self.mutations, request, now_ms)
        if usage is None:
            return True
        limit = usage.holding.limit
        may = not is_strict or usage.meter.tokens(limit, now_ms) >= 0
        if may:
            usage.meter.take(count, limit, now_ms)
        if not (may and is_strict):
            request.mutation_wait_until_ms = now_ms + self._throttled(self.mutations.key, usage, now_ms)
        return may

    def _charge_time(self, request: ChargedRequest, now_ms: int) -> int:
        if not self.request or request.api_key in EXEMPT:
            return 0
        elapsed_s = self.now_s() - request.began_s if request.began_s > 0 else -request.began_s
        wait_ms = self._charge(self.request, request, elapsed_s * 100, now_ms)
        return min(wait_ms, self._windows.size_ms)

    def _charge(self, kind: Metered[Rate], request: ChargedRequest, amount: float, now_ms: int) -> int:
        usage = self._usage(kind, request, now_ms)
        if usage is None:
            return 0
        usage.meter.record(amount, now_ms)
        return self._throttled(kind.key, usage, now_ms)

    def _usage(self, kind: Metered[Any], request: ChargedRequest, now_ms: int) -> Usage[Any] | None:
        return kind.of(request.principal.name, request.client_id or "", now_ms)

    def _throttled(self, key: str, usage: Usage[Any], now_ms: int) -> int:
        wait_ms: int = usage.meter.throttle_ms(usage.holding.limit, now_ms)
        usage.throttle_ms = wait_ms
        if wait_ms and (usage.told_ms is None or now_ms - usage.told_ms >= TELL_MS):
            usage.told_ms = now_ms
            limit, user, client = usage.holding
            log.warning(
                "a client is throttled user=%r client=%r quota=%s limit=%g wait_ms=%d",
                user,
                client,
                key,
                limit,
                wait_ms,
            )
        return wait_ms


def _plain(address: str | None) -> str:
    """An address as the edge tells it: Java writes those of IPv6 in full."""
    try:
        return str(ip_address(address or ""))
    except ValueError:
        return address or ""
