"""One partition's log: append, read, truncate, flush.

``end_offset`` moves only after the kernel has the bytes. The high watermark is kept here so that every
reader finds it in one place; who may raise it is decided elsewhere. All methods are synchronous; syncing to
the disk is handed out as ``FlushWork`` for a worker thread.
"""

from collections.abc import Iterator

from ottla.config.log import LogConfig
from ottla.model.errors import ErrorCode, InvariantBroken
from ottla.model.ids import TopicId, TopicPartition
from ottla.records.batch import BatchHeader, Buffer, CorruptRecords, stamp
from ottla.records.control import EndMarker, read_end_marker
from ottla.records.replicated import check_replicated
from ottla.records.validate import Origin, Refused, validate_for_append
from ottla.storage.disk.checkpoints import PARTITION_METADATA, encode_partition_metadata
from ottla.storage.disk.directory import PartitionHome, guarded
from ottla.storage.disk.file_names import SNAPSHOT_SUFFIX
from ottla.storage.log.epoch_checkpoint import LEADER_EPOCHS, encode_epochs, load_epochs
from ottla.storage.log.flushes import Flushes
from ottla.storage.log.leader_epochs import LeaderEpochs
from ottla.storage.log.outcomes import Appended, Duplicate, FlushWork
from ottla.storage.producers.producers import Producers
from ottla.storage.producers.snapshots import delete_snapshots
from ottla.storage.producers.state import WrittenBatch
from ottla.storage.segment.log_slice import LogSlice
from ottla.storage.segment.segment import Segment
from ottla.storage.segment.segments import Segments
from ottla.storage.segment.txn_index import AbortedTransaction

NEVER_CUT = 2**63 - 1
_new = tuple.__new__


class Log:
    """The batches of one partition, with their leader epochs and producers, between two offsets."""

    __slots__ = (
        "_epochs",
        "_flushes",
        "_lowest_cut",
        "_producers",
        "_segments",
        "_written_end",
        "config",
        "cuts",
        "end_offset",
        "first_dirty_offset",
        "high_watermark",
        "home",
        "log_start_offset",
        "topic_id",
        "was_clean",
    )

    def __init__(
        self,
        home: PartitionHome,
        config: LogConfig,
        segments: list[Segment],
        *,
        log_start_offset: int,
        end_offset: int,
        recovery_point: int,
        high_watermark: int = 0,
        topic_id: TopicId | None = None,
        was_clean: bool = True,
    ) -> None:
        self.home = home
        self.config = config
        self.topic_id = topic_id
        self.log_start_offset = log_start_offset
        self.end_offset = end_offset
        self.high_watermark = max(log_start_offset, min(high_watermark, end_offset))
        self.first_dirty_offset = 0
        """Where the next compaction begins."""
        self.was_clean = was_clean
        self.cuts = 0
        """How often the log was truncated: work begun before a truncation is void."""
        self._lowest_cut = NEVER_CUT
        self._written_end = end_offset
        """The end of the last batch in the file; below ``end_offset`` after a cut inside a batch."""
        self._segments = Segments(home, segments)
        self._epochs: LeaderEpochs | None = None
        self._producers: Producers | None = None
        """Like the epochs read from the disk when first needed."""
        self._flushes = Flushes(home, self._segments, recovery_point)

    # -- what it is --------------------------------------------------------------------------------

    @property
    def partition(self) -> TopicPartition:
        return self.home.partition

    @property
    def directory(self) -> str:
        """The log directory that holds this partition."""
        return self.home.directory.path

    @property
    def path(self) -> str:
        return self.home.path

    @property
    def size_bytes(self) -> int:
        return self._segments.size_bytes

    @property
    def segments(self) -> list[Segment]:
        return self._segments.all()

    @property
    def active_segment(self) -> Segment:
        return self._segments.active

    def holds(self, segment: Segment) -> bool:
        """Whether a segment is still one of the log's."""
        return self._segments.at(segment.base_offset) is segment

    @property
    def epochs(self) -> LeaderEpochs:
        if self._epochs is None:
            self._epochs = self._load_epochs()
        return self._epochs

    @guarded
    def _load_epochs(self) -> LeaderEpochs:
        return load_epochs(self.home, self._segments, self.log_start_offset, self.end_offset)

    @property
    def producers(self) -> Producers:
        if self._producers is None:
            self._producers = self._load_producers()
        return self._producers

    @guarded
    def _load_producers(self) -> Producers:
        start = self.log_start_offset
        if not self.was_clean:
            # Replay a recovered segment from its beginning, even if the log starts inside it.
            start = min(start, self._segments.at(start).base_offset)
        return Producers.load(self.home, self._segments, start, self.end_offset, was_clean=self.was_clean)

    def expire_producers(self, now_ms: int, expiration_ms: int) -> None:
        """Forget producers that were silent for too long; a state that is not loaded is left alone."""
        if self._producers is not None:
            self._producers.state.expire(now_ms, expiration_ms)

    @property
    def last_stable_offset(self) -> int:
        """Where readers of committed data must stop."""
        unstable = self.producers.state.first_unstable_offset(self.high_watermark)
        if unstable is None:
            return self.high_watermark
        return min(max(unstable, self.log_start_offset), self.high_watermark)

    def set_high_watermark(self, offset: int) -> None:
        """Set it, held between the log's start and end."""
        self.high_watermark = max(self.log_start_offset, min(offset, self.end_offset))

    @guarded
    def assign_topic_id(self, topic_id: TopicId) -> None:
        """Record which topic this partition belongs to; synced with the first data."""
        self._flushes.replace(PARTITION_METADATA, encode_partition_metadata(topic_id))
        self.topic_id = topic_id

    def note_created(self) -> None:
        """The log's directory is new: the first flush syncs its name too."""
        self._flushes.add(self.directory, self.path)

    # -- read --------------------------------------------------------------------------------------

    def read(
        self, offset: int, max_bytes: int, limit_offset: int, min_one_batch: bool = True
    ) -> LogSlice | None:
        """Whole batches from the one that contains ``offset``, all below ``limit_offset``.

        Never more than ``max_bytes``, except for a first batch that alone is larger, if ``min_one_batch``.
        One slice never crosses a segment's end. ``None``: the offset is outside the log.
        """
        end_offset = self.end_offset
        if not self.log_start_offset <= offset <= end_offset:
            return None
        directory = self.home.directory
        if directory.failure is not None:
            directory.check_online()
        limit_offset = min(limit_offset, end_offset)
        if offset >= limit_offset or (max_bytes <= 0 and not min_one_batch):
            return LogSlice(directory, None, 0, 0)
        try:
            return self._segments.read(offset, max_bytes, limit_offset, end_offset, min_one_batch)
        except OSError as error:
            directory.fail(error)
        except CorruptRecords as error:
            directory.fail_as_corrupt(self.partition, error)

    def batches_from(self, offset: int) -> Iterator[tuple[Segment, BatchHeader]]:
        """Every batch from the one that contains ``offset`` to the end."""
        return self._segments.batches_from(offset)

    @guarded
    def aborted_transactions(
        self, fetch_offset: int, found: LogSlice, limit_offset: int
    ) -> list[AbortedTransaction]:
        """Aborted transactions that may have records in a slice; more than need be, never fewer."""
        return self._segments.aborted_transactions(fetch_offset, found, limit_offset, self.end_offset)

    # -- append ------------------------------------------------------------------------------------

    def append_as_leader(
        self,
        view: Buffer,
        header: BatchHeader,
        *,
        leader_epoch: int,
        now_ms: int,
        origin: Origin = Origin.CLIENT,
        verification: int | None = None,
        must_be_verified: bool = False,
    ) -> Appended | Duplicate | Refused:
        """Validate, stamp and write one batch. ``view`` is written into; nobody keeps it."""
        validated = validate_for_append(view, header, self.config, now_ms, origin)
        if isinstance(validated, Refused):
            return validated
        header = validated.header
        base_offset = self.end_offset
        epochs = self.epochs
        if epochs.latest_epoch != leader_epoch:
            epochs.assign(leader_epoch, base_offset)
        marker: EndMarker | None = None
        if header[10] >= 0:
            if header.is_control:
                marker = read_end_marker(validated.view, header)
            judged = self.producers.judge(
                header, marker, origin, verification, must_be_verified, epochs.latest_start_offset
            )
            if judged:
                return self._not_appended(judged)
        position = header[0]
        stamp(validated.view, position, base_offset, leader_epoch)
        header = _new(BatchHeader, (position, base_offset, header[2], leader_epoch, *header[4:]))
        size = header[2] + 12
        data = validated.view
        if len(data) != size:
            data = memoryview(data)[position : position + size]
        self._write(data, [header], now_ms)
        if header[10] >= 0:
            self.producers.wrote(header, marker)
        if self.end_offset - self._flushes.recovery_point >= self.config.flush_messages:
            self.flush()
        return Appended(
            base_offset, self.end_offset - 1, validated.log_append_time_ms, self.log_start_offset, size
        )

    def _not_appended(self, judged: WrittenBatch | int) -> Duplicate | Refused:
        if isinstance(judged, int):
            return Refused(judged, while_appending=True)
        return Duplicate(judged.first_offset, judged.last_offset, judged.timestamp, self.log_start_offset)

    def append_as_follower(
        self, view: Buffer, *, now_ms: int, leader_epoch: int | None = None
    ) -> Appended | Refused:
        """Write what the leader sent, unchanged and in one call; a batch cut short at the end is left out.

        Batches of an epoch above ``leader_epoch`` and all behind them are left out too.
        """
        if not isinstance(view, memoryview):
            view = memoryview(view)
        try:
            headers = check_replicated(view, leader_epoch)
        except CorruptRecords as error:
            return Refused(int(ErrorCode.CORRUPT_MESSAGE), str(error))
        if not headers:
            return Appended(self.end_offset, self.end_offset - 1, -1, self.log_start_offset, 0)
        first = headers[0]
        if first.base_offset < self.end_offset:
            is_empty = self.log_start_offset == self.end_offset
            if not (is_empty and first.last_offset >= self.end_offset):
                text = f"offset {first.base_offset} is below the end {self.end_offset} of the log"
                return Refused(int(ErrorCode.UNKNOWN_SERVER_ERROR), text)
            self.truncate_fully_and_start_at(first.base_offset)
        size = headers[-1].end_position
        for group in [headers] if size <= self.config.segment_bytes else [[header] for header in headers]:
            self._write(view[group[0].position : group[-1].end_position], group, now_ms)
            for header in group:
                self._learn(view, header)
        if self.end_offset - self._flushes.recovery_point >= self.config.flush_messages:
            self.flush()
        return Appended(first.base_offset, self.end_offset - 1, -1, self.log_start_offset, size)

    def _learn(self, view: memoryview, header: BatchHeader) -> None:
        """Take note of a replicated batch's leader epoch and producer."""
        epochs = self.epochs
        if epochs.latest_epoch != header.partition_leader_epoch:
            epochs.assign(header.partition_leader_epoch, header.base_offset)
        if header.producer_id >= 0:
            self.producers.wrote(header, read_end_marker(view, header) if header.is_control else None)

    def _write(self, data: Buffer, headers: list[BatchHeader], now_ms: int) -> None:
        """Bytes to the kernel, then the end offset. A failure takes the directory offline."""
        directory = self.home.directory
        if directory.failure is not None:
            directory.check_online()
        if self._producers is None:
            self._producers = self._load_producers()
        last = headers[-1]
        last_offset = last[1] + last[7]
        newest = last[9] if len(headers) == 1 else max(header[9] for header in headers)
        try:
            segment = self._segments.active
            if segment.must_roll(self.config, len(data), last_offset, newest, now_ms):
                segment = self._roll_to(headers[0][1], now_ms)
            segment.append(data, headers, self.config.index_interval_bytes)
            segment.modified_ms = now_ms
        except OSError as error:
            self._segments.active.take_back()
            directory.fail(error)
        except CorruptRecords as error:
            directory.fail_as_corrupt(self.partition, error)
        self.end_offset = self._written_end = last_offset + 1

    @guarded
    def roll(self, now_ms: int) -> Segment:
        """Begin a new segment at the end of the log."""
        active = self._segments.active
        return active if active.base_offset == self.end_offset else self._roll_to(self.end_offset, now_ms)

    def _roll_to(self, base_offset: int, now_ms: int) -> Segment:
        """Finish the active segment and begin another one at ``base_offset``."""
        active = self._segments.active
        if base_offset <= active.base_offset:
            raise InvariantBroken(f"{self.partition} rolls to {base_offset}, not behind {active.base_offset}")
        if base_offset != self._written_end:
            self._vouch_for_gap(base_offset)
        segment = self._segments.roll(base_offset, now_ms)
        self._flushes.add(self.path)
        self.producers.save_snapshot(base_offset)
        self.home.directory.rolled.add(self.partition)
        return segment

    def _vouch_for_gap(self, base_offset: int) -> None:
        """Raise the recovery point beyond a gap between segments: recovery would take it for a lost tail."""
        self.flush()
        self._flushes.recovery_point = base_offset
        self.home.directory.raise_recovery_point(self.partition, base_offset)

    # -- truncate at either end -----------------------------------------------------------------------

    @guarded
    def truncate_to(self, offset: int) -> bool:
        """Cut off everything at and behind an offset; False if there was nothing to cut."""
        if offset >= self.end_offset:
            self.epochs.truncate_from_end(self.end_offset)
            self._save_epochs()
            return False
        segments = self._segments
        if offset < segments[0].base_offset:
            self._start_anew(offset)
            return True
        self.home.directory.lower_recovery_point(self.partition, offset)
        self._note_cut(offset)
        segments.delete_behind(offset, self.config.file_delete_delay_ms)
        self._written_end = segments.active.truncate_to(offset)
        if offset < self.recovery_point:
            segments.active.file().sync()
        self._flushes.recovery_point = min(self.recovery_point, offset)
        self.end_offset = offset
        self.log_start_offset = min(self.log_start_offset, offset)
        self.high_watermark = min(self.high_watermark, offset)
        self.first_dirty_offset = min(self.first_dirty_offset, offset)
        self.epochs.truncate_from_end(offset)
        self._save_epochs()  # a restart must not find epochs whose records are gone
        self._producers = Producers.load(self.home, segments, self.log_start_offset, offset, was_clean=False)
        self._producers.save_snapshot(offset)
        return True

    @guarded
    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Drop everything; the log is empty and begins at ``offset``."""
        self._start_anew(offset)

    def _start_anew(self, offset: int) -> None:
        lowest = min(offset, self.log_start_offset)
        self.home.directory.lower_recovery_point(self.partition, lowest)
        self._note_cut(lowest)
        self._segments.start_anew(offset, self.config.file_delete_delay_ms)
        self.log_start_offset = self.end_offset = self.high_watermark = offset
        self._written_end = self._flushes.recovery_point = offset
        self.first_dirty_offset = 0
        self.epochs.clear()
        self._save_epochs()
        self._producers = Producers.start_anew(self.home, self._segments, offset)

    def _note_cut(self, offset: int) -> None:
        """Records at and behind an offset are about to go; others may come in their place."""
        self.cuts += 1
        self._lowest_cut = min(self._lowest_cut, offset)

    def take_lowest_cut(self) -> int:
        """The lowest offset at which the log was cut since the last call: a copy is valid below it."""
        lowest, self._lowest_cut = self._lowest_cut, NEVER_CUT
        return lowest

    @guarded
    def raise_log_start_offset(self, offset: int) -> bool:
        """Let the log begin later, never behind the high watermark; True if it moved."""
        offset = min(offset, self.high_watermark)
        if offset <= self.log_start_offset:
            return False
        self.log_start_offset = offset
        self.epochs.truncate_from_start(offset)
        return True

    @guarded
    def drop_first_segments(self, count: int, now_ms: int) -> None:
        """Delete the oldest segments, all of them below the log start offset."""
        assert self.start_without(count, now_ms) <= self.log_start_offset, "readers may still ask for them"
        self.home.directory.note_log_start(self.partition, self.log_start_offset)
        self._segments.delete_first(count, self.config.file_delete_delay_ms)

    @guarded
    def start_without(self, count: int, now_ms: int) -> int:
        """Where the log would begin without its oldest segments; if these are all, an empty one is added."""
        if count == len(self._segments):
            self._roll_to(self.end_offset, now_ms)
        return self._segments[count].base_offset

    def replace_segments(self, old: list[Segment], new: Segment) -> None:
        """Put the segment that a compaction made in the place of its sources."""
        self._segments.replace(old, new)

    # -- recover, flush, close ---------------------------------------------------------------------

    @guarded
    def settle_after_crash(self) -> None:
        """Bring epochs and producers in line with the batches that survived, and save both."""
        self.epochs.learn(header for _, header in self.batches_from(self.recovery_point))
        self._save_epochs()
        delete_snapshots(self.home, above=self.end_offset, up_to=self.log_start_offset)
        self.producers.save_snapshot(self.end_offset)

    def _save_epochs(self) -> None:
        epochs = self._epochs
        if epochs is not None and epochs.dirty:
            self._flushes.replace(LEADER_EPOCHS, encode_epochs(epochs.entries()))
            epochs.dirty = False

    @property
    def recovery_point(self) -> int:
        """Everything below this offset is synced."""
        return self._flushes.recovery_point

    @guarded
    def flush_work(self) -> FlushWork | None:
        """What must be synced so that everything up to now survives a power cut; ``None`` if nothing."""
        if self.recovery_point >= self.end_offset:
            return None
        self._save_epochs()
        return self._flushes.work(self.end_offset, self.cuts)

    def flushed(self, work: FlushWork, now_ms: int = 0) -> None:
        """The work is done: raise the recovery point to its end, unless the log was cut meanwhile."""
        self._flushes.done(work, self.cuts, now_ms)

    def flush(self) -> None:
        """Sync at once."""
        work = self.flush_work()
        if work is not None:
            work()
            self.flushed(work)

    def is_flush_due(self, now_ms: int) -> bool:
        """Whether ``flush.ms`` has passed since the last flush and there is anything to sync."""
        return self._flushes.is_due(self.end_offset, self.config.flush_ms, now_ms)

    @guarded
    def closing_work(self) -> FlushWork:
        """Write everything that a clean restart reads; returns what must be synced before it counts."""
        if self._producers is not None and self._producers.state.snapshot_offset != self.end_offset:
            self._producers.save_snapshot(self.end_offset)
            self._flushes.add(self.home.file(self.end_offset, SNAPSHOT_SUFFIX), self.path)
        self._save_epochs()
        return self._flushes.closing_work(self.end_offset, self.cuts)

    def close(self) -> None:
        """Write everything that a clean restart reads, synced; close all files."""
        work = self.closing_work()
        work()
        self.closed(work)

    def closed(self, work: FlushWork) -> None:
        """The closing work is synced: close all files."""
        self.flushed(work)
        self.release()

    def release(self) -> None:
        """Close all open files."""
        self._segments.close_files()
