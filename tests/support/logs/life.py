"""A scripted life of a broker's logs, to be cut short at any write, rename or fsync."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from random import Random

from ottla.config.log import LogConfig
from ottla.model.ids import TopicId, TopicPartition
from ottla.records.batch import batches, read_header
from ottla.records.builder import build_batch
from ottla.records.control import build_end_marker
from ottla.records.record import Record
from ottla.records.validate import Origin
from ottla.storage.cleanup.cleaner import Cleaner
from ottla.storage.cleanup.retention import apply_retention
from ottla.storage.directories.log_dirs import LogDirs
from ottla.storage.disk.crash_disk import CrashDisk
from ottla.storage.log.log import Log
from ottla.storage.log.outcomes import Appended, Duplicate

LED = TopicPartition("led", 0)
FOLLOWED = TopicPartition("followed", 1)
COMPACTED = TopicPartition("compacted", 0)
PATHS = ("/a", "/b")
CLUSTER = "cluster"


class Promise:
    """What the world may hold against a log: everything ever written, and what was flushed of it."""

    def __init__(self) -> None:
        self.ever: dict[int, set[bytes]] = {}
        self.current: dict[int, bytes] = {}
        self.flushed_end = 0
        self.is_being_cut = False

    def wrote(self, content: bytes) -> None:
        for header in batches(content):
            batch = bytes(content[header.position : header.end_position])
            self.ever.setdefault(header.base_offset, set()).add(batch)
            self.current[header.base_offset] = batch

    def copy(self) -> Promise:
        twin = Promise()
        twin.ever = {offset: set(batches) for offset, batches in self.ever.items()}
        twin.current = dict(self.current)
        twin.flushed_end = self.flushed_end
        twin.is_being_cut = self.is_being_cut
        return twin

    def about_to_cut(self, offset: int) -> None:
        """From here on the log may lack what is at or behind an offset."""
        self.flushed_end = min(self.flushed_end, offset)
        self.is_being_cut = True

    def cut(self, offset: int) -> None:
        for base_offset in list(self.current):
            if read_header(self.current[base_offset]).end_offset > offset:
                del self.current[base_offset]
        self.is_being_cut = False


class Life:
    """The script. Every step is deterministic, so crash point ``n`` means the same in each run."""

    def __init__(self, disk: CrashDisk, seed: int) -> None:
        self.disk = disk
        self.random = Random(seed)
        self.promises: dict[TopicPartition, Promise] = {}
        self.configs = {
            "led": LogConfig(segment_bytes=900, index_interval_bytes=200),
            "followed": LogConfig(segment_bytes=700, index_interval_bytes=150, flush_messages=9),
            "compacted": LogConfig(
                segment_bytes=800,
                index_interval_bytes=100,
                cleanup_policy=frozenset({"compact"}),
                min_cleanable_dirty_ratio=0.1,
                delete_retention_ms=0,
            ),
        }
        self.now_ms = 1_000
        self.epoch = 0
        self.day = 0
        self.sequences: dict[int, int] = {}
        self.sent: dict[TopicPartition, deque[bytes]] = {}
        self.dirs = self.boot()

    def boot(self) -> LogDirs:
        dirs = LogDirs(self.disk, PATHS)
        dirs.lock()
        dirs.claim(1, CLUSTER, "Thu Jan 01 00:00:00 UTC 1970")
        dirs.open(LogConfig(), self.configs, self.now_ms)
        return dirs

    def run(self) -> None:
        for _ in self.steps():
            self.now_ms += 10

    def steps(self) -> Iterator[None]:
        """Two lives with a clean stop between them, then a third that never ends well."""
        for partition in (LED, FOLLOWED, COMPACTED):
            self.dirs.create(
                partition, self.configs[partition.topic], topic_id=TopicId(b"%016d" % 7), now_ms=self.now_ms
            )
            self.promises[partition] = Promise()
            yield
        for life in range(3):
            yield from self._some_days(days=4)
            if life < 2:
                self._flushes()
                self.dirs.close()
                for promise in self.promises.values():
                    promise.flushed_end = max([0, *map(self._end, promise.current.values())])
                yield
                self.dirs = self.boot()
                yield
                self._repeat()
                yield

    @staticmethod
    def _end(batch: bytes) -> int:
        return read_header(batch).end_offset

    def _some_days(self, days: int) -> Iterator[None]:
        for _ in range(days):
            day, self.day = self.day, self.day + 1
            self.epoch += self.random.random() < 0.4
            for _ in range(2):
                self._lead(LED)
                self._lead(COMPACTED)
                self._follow()
                yield
            if day % 3 == 1:
                self._transaction(is_commit=self.random.random() < 0.5)
                yield
            if day % 2:
                self._flushes()
                self.dirs.checkpoints.write_recovery_points()
                yield
            if day % 3 == 2:
                self._truncate()
                yield
            if day % 4 == 3:
                self._clean()
                yield
            if day % 4 == 1:
                self._retain()
                yield
            self.dirs.remove_garbage(self.now_ms)
            self.dirs.checkpoints.write_high_watermarks()
            yield

    # -- the steps ---------------------------------------------------------------------------------

    def log(self, partition: TopicPartition) -> Log:
        log = self.dirs.get(partition)
        assert log is not None, partition
        return log

    def _append(self, partition: TopicPartition, batch: bytearray, origin: Origin = Origin.CLIENT) -> None:
        log = self.log(partition)
        stamped = bytearray(batch)
        stamped[0:8] = log.end_offset.to_bytes(8, "big")
        stamped[12:16] = self.epoch.to_bytes(4, "big")
        promise = self.promises[partition]
        promise.ever.setdefault(log.end_offset, set()).add(bytes(stamped))
        outcome = log.append_as_leader(
            batch, read_header(batch), leader_epoch=self.epoch, now_ms=self.now_ms, origin=origin
        )
        assert isinstance(outcome, Appended), outcome
        promise.wrote(bytes(stamped))
        log.set_high_watermark(log.end_offset)

    def _lead(self, partition: TopicPartition) -> None:
        count = self.random.randint(1, 3)
        records = [
            Record(b"key-%d" % self.random.randint(0, 4), self._value(), timestamp=self.now_ms + at)
            for at in range(count)
        ]
        producer_id = self.random.choice((-1, 5))
        sequence = self.sequences.get(hash((partition, producer_id)), 0)
        batch = build_batch(
            records,
            producer_id=producer_id,
            producer_epoch=0 if producer_id >= 0 else -1,
            base_sequence=sequence if producer_id >= 0 else -1,
        )
        if producer_id >= 0:
            self.sent.setdefault(partition, deque(maxlen=3)).append(bytes(batch))
        self._append(partition, batch)
        self.sequences[hash((partition, producer_id))] = sequence + count

    def _repeat(self) -> None:
        """A producer that heard nothing sends its last batches again; a snapshot knows only the very last."""
        log = self.log(LED)
        for batch in self.sent[LED]:
            again = bytearray(batch)
            outcome = log.append_as_leader(
                again, read_header(again), leader_epoch=self.epoch, now_ms=self.now_ms
            )
            assert isinstance(outcome, Duplicate), outcome

    def _value(self) -> bytes | None:
        return None if self.random.random() < 0.1 else self.random.randbytes(self.random.randint(0, 120))

    def _transaction(self, *, is_commit: bool) -> None:
        for partition in (LED, COMPACTED):
            sequence = self.sequences.get(hash((partition, 9)), 0)
            records = [Record(b"key-1", b"in a transaction", timestamp=self.now_ms)]
            batch = build_batch(
                records, producer_id=9, producer_epoch=0, base_sequence=sequence, is_transactional=True
            )
            self._append(partition, batch)
            self.sequences[hash((partition, 9))] = sequence + 1
            marker = build_end_marker(
                producer_id=9,
                producer_epoch=0,
                is_commit=is_commit,
                coordinator_epoch=0,
                timestamp_ms=self.now_ms,
            )
            self._append(partition, marker, Origin.COORDINATOR)

    def _follow(self) -> None:
        leader, follower = self.log(LED), self.log(FOLLOWED)
        start = follower.end_offset
        if start < leader.log_start_offset:
            self.promises[FOLLOWED].about_to_cut(0)
            follower.truncate_fully_and_start_at(leader.log_start_offset)
            self.promises[FOLLOWED].cut(0)
            start = follower.end_offset
        found = leader.read(start, 700, leader.end_offset)
        if found is None or found.size == 0:
            return
        content = found.read()
        promise = self.promises[FOLLOWED]
        for header in batches(content):
            batch = bytes(content[header.position : header.end_position])
            promise.ever.setdefault(header.base_offset, set()).add(batch)
        outcome = follower.append_as_follower(bytearray(content), now_ms=self.now_ms)
        assert isinstance(outcome, Appended), outcome
        promise.wrote(content)
        promise.flushed_end = max(promise.flushed_end, follower.recovery_point)
        follower.set_high_watermark(follower.end_offset)

    def _flushes(self) -> None:
        for partition in (LED, COMPACTED):
            log = self.log(partition)
            log.flush()
            self.promises[partition].flushed_end = log.end_offset
        for log, work in self.dirs.flushes_due(self.now_ms):
            work()
            log.flushed(work, self.now_ms)

    def _truncate(self) -> None:
        """A new leader of FOLLOWED lacks its tail; what comes instead has a higher epoch on LED."""
        log, promise = self.log(FOLLOWED), self.promises[FOLLOWED]
        bounds = sorted(o for o in promise.current if o > log.log_start_offset)
        if len(bounds) < 3:
            return
        target = bounds[-self.random.randint(1, min(6, len(bounds)))]
        promise.about_to_cut(target)
        log.truncate_to(target)
        promise.cut(target)

    def _clean(self) -> None:
        cleaner = Cleaner(self.dirs)
        run = cleaner.next_run(self.now_ms)
        if run is None:
            return
        result = run.work()
        cleaner.finished(run, result)
        assert not cleaner.uncleanable

    def _retain(self) -> None:
        log, promise = self.log(LED), self.promises[LED]
        self.configs["led"] = LogConfig(segment_bytes=900, index_interval_bytes=200, retention_bytes=2_500)
        log.config = self.configs["led"]
        for each in list(self.dirs.logs.values()):
            apply_retention(each, self.now_ms)
        for base_offset in list(promise.current):
            if base_offset < log.log_start_offset:
                del promise.current[base_offset]
