"""One partition's log: append, read, truncate.

``end_offset`` moves only after the kernel has the bytes. The high watermark is kept here so that every
reader finds it in one place; who may raise it is decided elsewhere. All methods are synchronous; syncing to
the disk is handed out as ``FlushWork`` for a worker thread.
"""

from bisect import bisect_right
from collections.abc import Iterator

from ottla.config.log import LogConfig
from ottla.model.errors import ErrorCode, InvariantBroken
from ottla.model.ids import TopicId, TopicPartition
from ottla.records.batch import BatchHeader, Buffer, CorruptRecords, batches, crc_is_valid, stamp
from ottla.records.control import EndMarker, read_end_marker
from ottla.records.validate import Origin, Refused, validate_for_append
from ottla.storage.checkpoints import (
    LEADER_EPOCHS,
    PARTITION_METADATA,
    CorruptCheckpoint,
    decode_epochs,
    encode_epochs,
    encode_partition_metadata,
)
from ottla.storage.disk import replace_file
from ottla.storage.leader_epochs import LeaderEpochs
from ottla.storage.log_directory import PartitionHome, guarded
from ottla.storage.outcomes import Appended, Duplicate, FlushWork, LogSlice
from ottla.storage.producer_rebuild import delete_snapshots, rebuild_producers, save_snapshot
from ottla.storage.producer_state import ProducerState
from ottla.storage.segment import LOG_SUFFIX, Segment
from ottla.storage.txn_index import AbortedTransaction

TAIL_BOUNDARIES_MAX = 32
"""Batch ends remembered at the log's tail, where most readers are."""

_new = tuple.__new__


class Log:
    """The batches of one partition, in segments."""

    __slots__ = (
        "_epochs",
        "_flushed_at_ms",
        "_producers",
        "_segments",
        "_tail",
        "config",
        "end_offset",
        "high_watermark",
        "home",
        "log_start_offset",
        "recovery_point",
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
        self.recovery_point = recovery_point
        self.high_watermark = max(log_start_offset, min(high_watermark, end_offset))
        self.was_clean = was_clean
        self._segments = segments
        self._epochs: LeaderEpochs | None = None
        self._producers: ProducerState | None = None
        self._tail: dict[int, int] | None = None
        self._flushed_at_ms = 0

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
        return sum(segment.size for segment in self._segments)

    @property
    def segments(self) -> list[Segment]:
        return list(self._segments)

    @property
    def active_segment(self) -> Segment:
        return self._segments[-1]

    @property
    def epochs(self) -> LeaderEpochs:
        if self._epochs is None:
            self._epochs = self._load_epochs()
        return self._epochs

    @guarded
    def _load_epochs(self) -> LeaderEpochs:
        try:
            content = self.home.directory.disk.read_file(f"{self.path}/{LEADER_EPOCHS}")
            epochs = LeaderEpochs(decode_epochs(content))
        except (FileNotFoundError, CorruptCheckpoint) as error:
            epochs = self._epochs_of_batches()
            epochs.dirty = isinstance(error, CorruptCheckpoint)
        epochs.truncate_from_end(self.end_offset)
        epochs.truncate_from_start(self.log_start_offset)
        return epochs

    def _epochs_of_batches(self) -> LeaderEpochs:
        """What the batches themselves say, if the checkpoint is lost."""
        epochs = LeaderEpochs()
        for segment in self._segments:
            for header in segment.scan(0):
                if header.partition_leader_epoch > epochs.latest_epoch:
                    epochs.assign(header.partition_leader_epoch, header.base_offset)
        return epochs

    @property
    def producers(self) -> ProducerState:
        if self._producers is None:
            self._producers = self._load_producers()
        return self._producers

    @guarded
    def _load_producers(self) -> ProducerState:
        return rebuild_producers(
            self.home, self._segments, self.log_start_offset, self.end_offset, self.was_clean
        )

    @property
    def last_stable_offset(self) -> int:
        """Where readers of committed data must stop."""
        unstable = self.producers.first_unstable_offset(self.high_watermark)
        return self.high_watermark if unstable is None else min(unstable, self.high_watermark)

    def set_high_watermark(self, offset: int) -> int:
        """Set it, held between the log's start and end; returns what it became."""
        self.high_watermark = max(self.log_start_offset, min(offset, self.end_offset))
        return self.high_watermark

    @guarded
    def assign_topic_id(self, topic_id: TopicId) -> None:
        """Record which topic this partition belongs to, before its first data."""
        replace_file(
            self.home.directory.disk, f"{self.path}/{PARTITION_METADATA}", encode_partition_metadata(topic_id)
        )
        self.topic_id = topic_id

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
        """Judge, stamp and write one batch. ``view`` is written into; nobody keeps it."""
        validated = validate_for_append(view, header, self.config, now_ms, origin)
        if isinstance(validated, Refused):
            return validated
        header = validated.header
        marker: EndMarker | None = None
        if header[10] >= 0:
            if header.is_control:
                marker = read_end_marker(validated.view, header)
            judged = self._judge_producer(header, marker, origin, verification, must_be_verified)
            if judged is not None:
                return judged
        base_offset = self.end_offset
        position = header[0]
        stamp(validated.view, position, base_offset, leader_epoch)
        header = _new(BatchHeader, (position, base_offset, header[2], leader_epoch, *header[4:]))
        size = header[2] + 12
        data = validated.view
        if len(data) != size:
            data = memoryview(data)[position : position + size]
        self._write(data, [header], now_ms)
        epochs = self.epochs
        if epochs.latest_epoch != leader_epoch:
            epochs.assign(leader_epoch, base_offset)
        if header[10] >= 0:
            self._note_producer(header, marker)
        return Appended(
            base_offset, self.end_offset - 1, validated.log_append_time_ms, self.log_start_offset, size
        )

    def _judge_producer(
        self,
        header: BatchHeader,
        marker: EndMarker | None,
        origin: Origin,
        verification: int | None,
        must_be_verified: bool,
    ) -> Duplicate | Refused | None:
        producers = self.producers
        if marker is not None:
            code = producers.refuse_marker(header, marker)
            return Refused(code, while_appending=True) if code else None
        if origin == Origin.CLIENT:
            written = producers.find_duplicate(header)
            if written is not None:
                return Duplicate(
                    written.first_offset, written.last_offset, written.timestamp, self.log_start_offset
                )
        if (
            must_be_verified
            and header.is_transactional
            and not producers.has_open_transaction(header.producer_id)
            and not producers.is_verified(header.producer_id, verification)
        ):
            return Refused(int(ErrorCode.INVALID_TXN_STATE), while_appending=True)
        code = producers.refuse_batch(header, origin)
        return Refused(code, while_appending=True) if code else None

    def _note_producer(self, header: BatchHeader, marker: EndMarker | None) -> None:
        producers = self.producers
        producers.end_offset = header.end_offset
        if header.is_control:
            done = producers.wrote_marker(header, marker) if marker is not None else None
            if done is not None and done.is_aborted:
                stable = producers.last_stable_offset_after(done)
                self._add_aborted(
                    AbortedTransaction(done.producer_id, done.first_offset, done.last_offset, stable)
                )
        else:
            producers.wrote_batch(header)

    @guarded
    def _add_aborted(self, entry: AbortedTransaction) -> None:
        self._segments[-1].add_aborted(entry)

    def append_as_follower(
        self, view: Buffer, *, now_ms: int, leader_epoch: int | None = None
    ) -> Appended | Refused:
        """Write what the leader sent, verbatim and in one call; a batch cut short at the end is left out.

        Batches of an epoch above ``leader_epoch`` and all behind them are left out too.
        """
        if not isinstance(view, memoryview):
            view = memoryview(view)
        try:
            headers = self._sound_batches(view, leader_epoch)
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
        if size > self.config.segment_bytes:
            for header in headers:
                self._write(view[header.position : header.end_position], [header], now_ms)
                self._learn(view, header)
        else:
            self._write(view[:size], headers, now_ms)
            for header in headers:
                self._learn(view, header)
        return Appended(first.base_offset, self.end_offset - 1, -1, self.log_start_offset, size)

    def _sound_batches(self, view: memoryview, leader_epoch: int | None) -> list[BatchHeader]:
        headers: list[BatchHeader] = []
        last_offset = -1
        for header in batches(view):
            if leader_epoch is not None and header.partition_leader_epoch > leader_epoch:
                break
            if not crc_is_valid(view, header):
                raise CorruptRecords(f"the batch at offset {header.base_offset} fails its checksum")
            if header.base_offset <= last_offset or header.last_offset_delta < 0:
                raise CorruptRecords(f"offset {header.base_offset} does not follow {last_offset}")
            last_offset = header.last_offset
            headers.append(header)
        return headers

    def _learn(self, view: memoryview, header: BatchHeader) -> None:
        """Epoch and producer state that a replicated batch carries."""
        epochs = self.epochs
        if epochs.latest_epoch != header.partition_leader_epoch:
            epochs.assign(header.partition_leader_epoch, header.base_offset)
        if header.producer_id >= 0:
            self._note_producer(header, read_end_marker(view, header) if header.is_control else None)

    def _write(self, data: Buffer, headers: list[BatchHeader], now_ms: int) -> None:
        """Bytes to the kernel, then the end offset. A failure takes the directory offline."""
        directory = self.home.directory
        if directory.failure is not None:
            directory.check_online()
        last = headers[-1]
        try:
            segment = self._segments[-1]
            if self._must_roll(segment, len(data), headers, now_ms):
                segment = self._roll_to(headers[0].base_offset, now_ms)
            segment.append(data, headers, self.config.index_interval_bytes)
        except OSError as error:
            self._take_back()
            directory.fail(error)
        self.end_offset = last[1] + last[7] + 1
        tail = self._tail
        if tail is None:
            tail = self._tail = {}
        elif len(tail) >= TAIL_BOUNDARIES_MAX:
            del tail[next(iter(tail))]
        tail[self.end_offset] = segment.size

    def _take_back(self) -> None:
        try:
            self._segments[-1].take_back()
        except OSError:
            return

    # -- roll --------------------------------------------------------------------------------------

    def _must_roll(self, segment: Segment, size: int, headers: list[BatchHeader], now_ms: int) -> bool:
        config = self.config
        if segment.size + size > config.segment_bytes:
            return segment.size > 0
        if not segment.accepts(headers[-1].last_offset):
            return True
        if not segment.size:
            return False
        wait_ms = config.segment_ms
        if config.is_compacted and config.max_compaction_lag_ms < wait_ms:
            wait_ms = config.max_compaction_lag_ms
        if segment.waited_ms(now_ms, headers[-1].max_timestamp) > wait_ms - config.segment_jitter_ms:
            return True
        return len(segment.index) >= config.segment_index_bytes // 8 or (
            len(segment.times) >= config.segment_index_bytes // 12 - 1
        )

    @guarded
    def roll(self, now_ms: int) -> Segment:
        """Begin a new segment at the end of the log."""
        if self._segments[-1].size == 0:
            return self._segments[-1]
        return self._roll_to(self.end_offset, now_ms)

    def _roll_to(self, base_offset: int, now_ms: int) -> Segment:
        """Close the books of the active segment and begin another one at ``base_offset``."""
        active = self._segments[-1]
        if base_offset <= active.base_offset:
            raise InvariantBroken(f"{self.partition} rolls to {base_offset}, not behind {active.base_offset}")
        active.save_indexes()
        active.modified_ms = now_ms
        segment = Segment(self.home, base_offset, created_ms=now_ms, modified_ms=now_ms)
        segment.create()
        self.home.directory.disk.sync_directory(self.path)
        self._segments.append(segment)
        self._tail = None
        producers = self.producers
        producers.end_offset = self.end_offset
        save_snapshot(self.home, producers, base_offset)
        return segment

    # -- read --------------------------------------------------------------------------------------

    def read(
        self, offset: int, max_bytes: int, limit_offset: int, min_one_batch: bool = True
    ) -> LogSlice | None:
        """Whole batches from the one that holds ``offset``, all below ``limit_offset``.

        Never more than ``max_bytes``, but for a first batch that alone is larger, if ``min_one_batch``.
        One slice never crosses a segment's end. ``None``: the offset is outside the log.
        """
        if not self.log_start_offset <= offset <= self.end_offset:
            return None
        directory = self.home.directory
        if directory.failure is not None:
            directory.check_online()
        limit_offset = min(limit_offset, self.end_offset)
        if offset >= limit_offset or (max_bytes <= 0 and not min_one_batch):
            return LogSlice(directory, None, 0, 0)
        try:
            return self._read(offset, max_bytes, limit_offset, min_one_batch)
        except OSError as error:
            directory.fail(error)
        except CorruptRecords as error:
            directory.fail(OSError(f"{self.partition}: {error}"))

    def _read(self, offset: int, max_bytes: int, limit_offset: int, min_one_batch: bool) -> LogSlice:
        directory = self.home.directory
        found = self._place_of(offset)
        if found is None:
            return LogSlice(directory, None, 0, 0)
        segment, start = found
        end = self._end_position(segment, limit_offset)
        if end - start > max_bytes:
            end = self._cut(segment, start, max_bytes, min_one_batch)
        if end <= start:
            return LogSlice(directory, None, 0, 0)
        return LogSlice(directory, segment.file(), start, end - start, segment.base_offset)

    def _place_of(self, offset: int) -> tuple[Segment, int] | None:
        """Segment and position of the batch that holds an offset, or of the next one behind a gap."""
        segments = self._segments
        tail = self._tail
        if tail is not None and (position := tail.get(offset)) is not None and position < segments[-1].size:
            return segments[-1], position
        at = self._segment_at(offset)
        while at < len(segments):
            header = segments[at].locate(offset)
            if header is not None:
                return segments[at], header.position
            at += 1
        return None

    def _segment_at(self, offset: int) -> int:
        segments = self._segments
        if offset >= segments[-1].base_offset:
            return len(segments) - 1
        return max(0, bisect_right(segments, offset, key=_base_offset) - 1)

    def _end_position(self, segment: Segment, limit_offset: int) -> int:
        """Where in a segment the batches below an offset end."""
        if segment is not self._segments[-1]:
            following = self._segments[bisect_right(self._segments, segment.base_offset, key=_base_offset)]
            if limit_offset >= following.base_offset:
                return segment.size
        elif limit_offset >= self.end_offset:
            return segment.size
        elif self._tail is not None and (position := self._tail.get(limit_offset)) is not None:
            return position
        header = segment.locate(limit_offset)
        return header.position if header is not None else segment.size

    def _cut(self, segment: Segment, start: int, max_bytes: int, min_one_batch: bool) -> int:
        """The last known batch boundary within ``max_bytes``, or the end of the first batch."""
        end = segment.index.floor_position(start + max_bytes)
        if end > start:
            return end
        end = start
        for header in segment.scan(start):
            if header.end_position > start + max_bytes:
                return header.end_position if end == start and min_one_batch else end
            end = header.end_position
        return end

    def batches_from(self, offset: int) -> Iterator[tuple[Segment, BatchHeader]]:
        """Every batch from the one that holds ``offset`` to the end."""
        for segment in self._segments[self._segment_at(offset) :]:
            header = segment.locate(offset)
            if header is not None:
                for each in segment.scan(header.position):
                    yield segment, each

    # -- truncate ----------------------------------------------------------------------------------

    @guarded
    def truncate_to(self, offset: int) -> bool:
        """Cut off everything at and behind an offset; False if there was nothing to cut."""
        if offset >= self.end_offset:
            self.epochs.truncate_from_end(self.end_offset)
            return False
        if offset < self._segments[0].base_offset:
            self._start_anew(offset)
            return True
        home = self.home
        home.directory.lower_recovery_point(self.partition, offset)
        self._tail = None
        keep = self._segment_at(offset) + 1
        self._delete(self._segments[keep:], self._segments[:keep])
        active = self._segments[-1]
        active.truncate_to(offset)
        if offset < self.recovery_point:
            active.file().sync()
        self.recovery_point = min(self.recovery_point, offset)
        self.end_offset = offset
        self.log_start_offset = min(self.log_start_offset, offset)
        self.high_watermark = min(self.high_watermark, offset)
        self.epochs.truncate_from_end(offset)
        delete_snapshots(home, above=offset)
        self._producers = rebuild_producers(home, self._segments, self.log_start_offset, offset, False)
        save_snapshot(home, self._producers, offset)
        return True

    @guarded
    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Drop everything; the log is empty and begins at ``offset``."""
        self._start_anew(offset)

    def _start_anew(self, offset: int) -> None:
        home = self.home
        home.directory.lower_recovery_point(self.partition, min(offset, self.log_start_offset))
        self._tail = None
        segment = Segment(home, offset)
        self._delete(self._segments, [segment])
        segment.create()
        home.directory.disk.sync_directory(self.path)
        self.log_start_offset = self.end_offset = self.high_watermark = self.recovery_point = offset
        self.epochs.clear()
        self._save_epochs()
        delete_snapshots(home, above=-1)
        self._producers = ProducerState(offset)

    def _delete(self, gone: list[Segment], rest: list[Segment]) -> None:
        """Take segments out of the log; their files vanish later."""
        if not gone:
            return
        directory = self.home.directory
        for segment in reversed(gone):
            for path in segment.rename_to_deleted():
                directory.discard(path, segment.modified_ms + self.config.file_delete_delay_ms)
        directory.disk.sync_directory(self.path)
        self._segments = rest

    @guarded
    def settle_after_crash(self) -> None:
        """Bring epochs and producers in line with the batches that survived, and note them down."""
        epochs = self.epochs
        for _, header in self.batches_from(min(self.recovery_point, self.end_offset)):
            if header.partition_leader_epoch > epochs.latest_epoch:
                epochs.assign(header.partition_leader_epoch, header.base_offset)
        self._save_epochs()
        delete_snapshots(self.home, above=self.end_offset, up_to=self.log_start_offset)
        save_snapshot(self.home, self.producers, self.end_offset)

    # -- flush and close ---------------------------------------------------------------------------

    def _save_epochs(self) -> None:
        epochs = self._epochs
        if epochs is not None and epochs.dirty:
            path = f"{self.path}/{LEADER_EPOCHS}"
            replace_file(self.home.directory.disk, path, encode_epochs(epochs.entries()))
            epochs.dirty = False

    @property
    def unflushed_records(self) -> int:
        return self.end_offset - self.recovery_point

    @guarded
    def flush_work(self) -> FlushWork | None:
        """What must be synced so that everything up to now survives a power cut; ``None`` if nothing."""
        if self.recovery_point >= self.end_offset:
            return None
        self._save_epochs()
        first = self._segment_at(self.recovery_point)
        for segment in self._segments[first:-1]:
            segment.save_indexes()
        files = [segment.file() for segment in self._segments[first:]]
        paths = [
            self.home.file(segment.base_offset, suffix)
            for segment in self._segments[first:]
            for suffix in FLUSHED_SUFFIXES
        ]
        return FlushWork(self.home.directory, files, paths, self.path, self.end_offset)

    def flushed(self, work: FlushWork) -> None:
        """The work is done: a restart need not look below its end."""
        self.recovery_point = max(self.recovery_point, min(work.end_offset, self.end_offset))

    def flush(self) -> None:
        """Sync at once."""
        work = self.flush_work()
        if work is not None:
            work()
            self.flushed(work)

    @guarded
    def close(self) -> None:
        """Write everything that a clean restart wants to find, synced; let go of all files."""
        self.flush()
        self._save_epochs()
        active = self._segments[-1]
        active.save_indexes()
        if self._producers is not None:
            save_snapshot(self.home, self._producers, self.end_offset)
        self.release()

    def release(self) -> None:
        """Let go of all open files."""
        for segment in self._segments:
            segment.close_file()


def _base_offset(segment: Segment) -> int:
    return segment.base_offset


FLUSHED_SUFFIXES = (".index", ".timeindex", ".txnindex", ".snapshot")

__all__ = ["Appended", "Duplicate", "FlushWork", "Log", "LogSlice", "LOG_SUFFIX"]
