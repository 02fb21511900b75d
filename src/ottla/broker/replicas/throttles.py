"""Replication throttles: how fast replicas that are behind may be filled (KIP-73).

Only replicas named in a topic's settings are throttled, and only while they are not in sync: a throttle must
never push a caught-up replica out of the ISR.
"""

from collections import deque

from ottla.broker.replicas.partition import Partition
from ottla.broker.runtime.runtime import Runtime
from ottla.config.areas import ReplicationConfig
from ottla.config.log import UNLIMITED

WINDOW_MS = 1_000
WINDOWS = 11
NAMED_MAX = 1_000


class Rate:
    """Bytes a second over the last eleven seconds, as Kafka measures it."""

    __slots__ = ("_windows", "limit")

    def __init__(self) -> None:
        self.limit = UNLIMITED
        self._windows: deque[list[int]] = deque()

    def record(self, count: int, now_ms: int) -> None:
        """Count these bytes now."""
        windows = self._windows
        if windows and now_ms - windows[-1][0] < WINDOW_MS:
            windows[-1][1] += count
        else:
            windows.append([now_ms, count])
            self._forget(now_ms)

    def is_exceeded(self, now_ms: int) -> bool:
        """Too many bytes of late?"""
        self._forget(now_ms)
        if not self._windows:
            return False
        elapsed_ms = max(now_ms - self._windows[0][0], (WINDOWS - 1) * WINDOW_MS)
        return sum(count for _, count in self._windows) * 1_000 > self.limit * elapsed_ms

    def _forget(self, now_ms: int) -> None:
        windows = self._windows
        while windows and now_ms - windows[0][0] >= WINDOWS * WINDOW_MS:
            windows.popleft()


class Throttles:
    """The leader's and the follower's throttle of this broker, and that of its own directories."""

    __slots__ = ("_clock", "_identity", "_named", "directories", "follower", "leader")

    def __init__(self, runtime: Runtime) -> None:
        self._clock = runtime.clock
        self._identity = runtime.identity
        self._named: dict[int, tuple[tuple[str, ...], frozenset[str]]] = {}
        """Lists of throttled replicas as sets, by the lists' identities: a list of a topic's thousands of
        replicas would be walked for each of its partitions, in every fetch."""
        self.leader = Rate()
        self.follower = Rate()
        self.directories = Rate()
        self.set_limits(runtime.config.replication)

    def set_limits(self, settings: ReplicationConfig) -> None:
        """Bytes a second, from the broker's dynamic settings."""
        self.leader.limit = settings.leader_replication_throttled_rate
        self.follower.limit = settings.follower_replication_throttled_rate
        self.directories.limit = settings.replica_alter_log_dirs_io_max_bytes_per_second

    def leader_holds_back(self, partition: Partition, follower: int) -> bool:
        """Must this follower wait for its data? Never while it is in sync."""
        if self.leader.limit >= UNLIMITED:
            return False
        return (
            not partition.has_in_sync(follower)
            and self._names(partition, partition.log.config.leader_replication_throttled_replicas)
            and self.leader.is_exceeded(self._clock.monotonic_ms())
        )

    def leader_sent(self, partition: Partition, count: int) -> None:
        """Count what went to a follower."""
        if self.leader.limit < UNLIMITED and self._names(
            partition, partition.log.config.leader_replication_throttled_replicas
        ):
            self.leader.record(count, self._clock.monotonic_ms())

    def follower_holds_back(self, partition: Partition) -> bool:
        """Should this partition, which is behind, not be fetched just now?"""
        if self.follower.limit >= UNLIMITED:
            return False
        return self._names(
            partition, partition.log.config.follower_replication_throttled_replicas
        ) and self.follower.is_exceeded(self._clock.monotonic_ms())

    def follower_got(self, partition: Partition, count: int) -> None:
        """Count what came from a leader."""
        if self.follower.limit < UNLIMITED and self._names(
            partition, partition.log.config.follower_replication_throttled_replicas
        ):
            self.follower.record(count, self._clock.monotonic_ms())

    def copying_holds_back(self) -> bool:
        """Should nothing be copied between directories just now?"""
        return self.directories.limit < UNLIMITED and self.directories.is_exceeded(self._clock.monotonic_ms())

    def copied(self, count: int) -> None:
        """Count what was copied between directories."""
        if self.directories.limit < UNLIMITED:
            self.directories.record(count, self._clock.monotonic_ms())

    def _names(self, partition: Partition, replicas: tuple[str, ...]) -> bool:
        if not replicas:
            return False
        known = self._named.get(id(replicas))
        if known is None or known[0] is not replicas:
            if len(self._named) >= NAMED_MAX:
                self._named.clear()
            known = self._named[id(replicas)] = (replicas, frozenset(replicas))
        return "*" in known[1] or f"{partition.name.partition}:{self._identity.broker_id}" in known[1]
