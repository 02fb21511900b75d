"""Loading an offsets partition: large batches, holes, and an end that compaction took away."""

from __future__ import annotations

from typing import Any, cast

from ottla.broker.coordinating.loading import SLICE_BYTES, Loading
from ottla.config.group import GroupConfig
from ottla.coordinator.group.core import GroupShard
from ottla.coordinator.group.stored.committed import CommittedOffset
from ottla.coordinator.group.stored.records import offset_record
from ottla.model.errors import LogDirectoryFailed
from ottla.model.ids import BrokerId, TopicPartition
from ottla.records.batch import MAGIC_AT
from ottla.records.builder import build_batch
from ottla.records.record import Record
from ottla.replication.leader import PartitionLeader

PARTITION = TopicPartition("__consumer_offsets", 0)
ORDERS_0 = TopicPartition("orders", 0)


class Piece:
    """What a read gives."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def buffer(self) -> bytes:
        return self._data


class StillLog:
    """Batches at their offsets, and an end that may lie behind the last of them."""

    def __init__(self, end_offset: int, batches: dict[int, bytes]) -> None:
        self.log_start_offset = 0
        self.end_offset = end_offset
        self._batches = batches

    def read(self, offset: int, size: int, limit: int) -> Piece | None:
        """At least one batch, however large, as the real log does; none behind the last."""
        data = b""
        for base in sorted(self._batches):
            if base >= offset and (not data or len(data) + len(self._batches[base]) <= size):
                data += self._batches[base]
        return Piece(data) if data else None


class LedPartitions:
    """Hosts one log, and leads its partition alone."""

    def __init__(self, log: StillLog) -> None:
        self._log = log
        self.leader = PartitionLeader(BrokerId(1), min_insync_replicas=1, lag_time_max_ms=30_000)

    def log(self, partition: TopicPartition) -> StillLog:
        return self._log

    def find(self, topic: str, partition: int) -> LedPartitions:
        return self


def a_batch(base_offset: int, offset: int, count: int = 1) -> bytes:
    """Commits of one partition, the last of them of this offset."""
    records = []
    for each in range(offset - count + 1, offset + 1):
        key, value = offset_record("g", ORDERS_0, CommittedOffset(each, -1, "x" * 4_000, 0))
        records.append(Record(key, value))
    return bytes(build_batch(records, base_offset=base_offset))


def run(partitions: LedPartitions) -> tuple[GroupShard, bool]:
    """The shard, and whether it is loaded in the end."""
    shard = GroupShard(GroupConfig(), str)
    load = Loading(cast(Any, partitions), PARTITION, shard).run()
    for _ in range(1_000):
        try:
            next(load)
        except StopIteration as end:
            return shard, end.value
    raise AssertionError("the load never ends")


def loaded(log: StillLog) -> GroupShard:
    shard, is_loaded = run(LedPartitions(log))
    assert is_loaded
    return shard


def committed(shard: GroupShard) -> int:
    return shard.groups["g"].offsets[ORDERS_0].offset


def test_a_batch_larger_than_a_slice_is_loaded() -> None:
    large = a_batch(0, 500, count=200)

    shard = loaded(StillLog(200, {0: large}))

    assert len(large) > 2 * SLICE_BYTES
    assert committed(shard) == 500


def test_a_hole_in_the_middle_is_passed_over() -> None:
    assert committed(loaded(StillLog(100, {0: a_batch(0, 5), 99: a_batch(99, 7)}))) == 7


def test_an_end_behind_the_last_batch_ends_the_load() -> None:
    assert committed(loaded(StillLog(50, {0: a_batch(0, 5)}))) == 5


def test_a_log_with_no_batch_left_loads_no_group() -> None:
    assert loaded(StillLog(50, {})).groups == {}


def test_a_batch_of_a_form_nobody_reads_any_more_ends_the_load_there() -> None:
    ancient = bytearray(a_batch(1, 9))
    ancient[MAGIC_AT] = 0

    assert committed(loaded(StillLog(3, {0: a_batch(0, 5), 1: bytes(ancient)}))) == 5


def test_a_disk_that_fails_while_groups_are_read_is_reported_and_ends_the_load() -> None:
    """Seed 1009: the error came out of a timer, and nobody took the directory offline."""

    class BadLog(StillLog):
        def read(self, offset: int, size: int, limit: int) -> Piece | None:
            raise LogDirectoryFailed("/data", "input/output error")

    failed: list[LogDirectoryFailed] = []
    partitions = LedPartitions(BadLog(50, {0: a_batch(0, 5)}))
    partitions.directory_failed = failed.append  # type: ignore[attr-defined]

    _, is_loaded = run(partitions)

    assert [each.directory for each in failed] == ["/data"]
    assert not is_loaded
