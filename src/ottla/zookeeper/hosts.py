"""Which server to try next, how long to wait after a round of failures, and what went wrong with each."""

from collections.abc import MutableSequence, Sequence
from typing import Any, Final, Protocol

from ottla.zookeeper.connect_string import Host

DELAY_FIRST_MS: Final = 20
DELAY_MAX_MS: Final = 1_000


class Random(Protocol):
    """The part of ``random.Random`` that is needed here."""

    def shuffle(self, x: MutableSequence[Any]) -> None: ...
    def random(self) -> float: ...


class HostRing:
    """Goes round the shuffled servers, so that the clients of an ensemble spread over it."""

    __slots__ = ("_hosts", "_next", "_random", "_rounds", "_tried", "failures")

    def __init__(self, hosts: Sequence[Host], random: Random) -> None:
        self._random = random
        self._hosts = list(dict.fromkeys(hosts))
        random.shuffle(self._hosts)
        self._next = 0
        self._tried = 0
        self._rounds = 0
        self.failures: dict[Host, str] = {}

    def __len__(self) -> int:
        return len(self._hosts)

    def next_host(self) -> Host:
        """The server after the last one tried."""
        host = self._hosts[self._next]
        self._next = (self._next + 1) % len(self._hosts)
        return host

    def failed(self, host: Host, reason: str) -> int:
        """Note why; returns how many milliseconds to wait before the next attempt."""
        self.failures[host] = reason
        self._tried += 1
        if self._tried < len(self._hosts):
            return 0
        self._tried = 0
        delay = min(DELAY_FIRST_MS << min(self._rounds, 10), DELAY_MAX_MS)
        self._rounds += 1
        return max(1, int(delay * (0.5 + self._random.random() / 2)))

    def connected(self) -> None:
        """A server gave us the session: pauses are short again."""
        self._rounds = 0
        self.failures.clear()

    def was_stable(self) -> None:
        """A connection held for a while before it broke: that begins a new round."""
        self._tried = 0
