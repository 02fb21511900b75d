"""What clients with quotas use: one series a client, for so many of them at most."""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Final, Protocol

from ottla.broker.quotas.enforcer import ClientQuotas
from ottla.broker.quotas.usage import Metered, Usage
from ottla.broker.runtime.clock import Clock

CLIENTS_SHOWN_MAX: Final = 200
Row = tuple[float, str, str]
"""A number, and the user and client id that it is of."""


class HasQuotas(Protocol):
    """The parts of a broker that these numbers are read from."""

    client_quotas: ClientQuotas
    clock: Clock


def rates(kind: str) -> Callable[[HasQuotas], Iterator[Row]]:
    """What each client uses a second."""
    return _read(kind, lambda usage, now_ms: float(usage.meter.per_second(now_ms)))


def throttle_times(kind: str) -> Callable[[HasQuotas], Iterator[Row]]:
    """How long each client was last told to wait."""
    return _read(kind, lambda usage, now_ms: usage.throttle_ms)


def tokens(kind: str) -> Callable[[HasQuotas], Iterator[Row]]:
    """How many changes of partitions each client has left."""
    return _read(kind, lambda usage, now_ms: float(usage.meter.tokens(usage.holding.limit, now_ms)))


def _read(kind: str, value: Callable[[Usage[Any], int], float]) -> Callable[[HasQuotas], Iterator[Row]]:
    def read(broker: HasQuotas) -> Iterator[Row]:
        now_ms = broker.clock.monotonic_ms()
        metered: Metered[Any] = getattr(broker.client_quotas, kind)
        for usage in islice(metered, CLIENTS_SHOWN_MAX):
            yield value(usage, now_ms), usage.holding.user, usage.holding.client

    return read
