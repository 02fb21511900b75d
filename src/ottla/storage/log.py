"""One partition's log: append, read, truncate.

``end_offset`` moves only after the kernel has the bytes. The high watermark is kept here so that every
reader finds it in one place; who may raise it is decided elsewhere. All methods are synchronous; syncing to
the disk is handed out as ``FlushWork`` for a worker thread.
"""

from ottla.model.errors import ErrorCode, InvariantBroken
from ottla.model.ids import TopicId
from ottla.records.batch import BatchHeader, Buffer, CorruptRecords, batches, crc_is_valid, stamp
from ottla.records.control import EndMarker, read_end_marker
from ottla.records.validate import Origin, Refused, validate_for_append
from ottla.storage import producer_state, txn_index
from ottla.storage.checkpoints import (
    LEADER_EPOCHS,
    PARTITION_METADATA,
    encode_epochs,
    encode_partition_metadata,
)
from ottla.storage.log_directory import guarded
from ottla.storage.log_reader import LogReader
from ottla.storage.outcomes import Appended, Duplicate, FlushWork, LogSlice
from ottla.storage.producer_rebuild import (
    delete_snapshots,
    rebuild_producers,
    save_snapshot,
)
from ottla.storage.producer_state import ProducerState, WrittenBatch
from ottla.storage.repeated_batches import find_written
from ottla.storage.segment import LOG_SUFFIX, Segment
from ottla.storage.txn_index import AbortedTransaction

TAIL_BOUNDARIES_MAX = 32
"""Batch ends remembered at the log's tail, where most readers are."""

_new = tuple.__new__


class Log(LogReader):
    """The batches of one partition, in segments: the one who may change them."""

    __slots__ = ()

    @guarded
    def assign_topic_id(self, topic_id: TopicId) -> None:
        """Record which topic this partition belongs to; synced with the first data."""
        self._replace_unsynced(PARTITION_METADATA, encode_partition_metadata(topic_id))
        self.topic_id = topic_id

    def note_created(self) -> None:
        """The log's directory is new: the first flush makes its name durable too."""
        self._unsynced_names |= {self.directory, self.path}

    def _replace_unsynced(self, name: str, content: bytes) -> None:
        """Replace a file of the partition in one step; the next flush syncs it."""
        path = f"{self.path}/{name}"
        disk = self.home.directory.disk
        disk.write_file(path + ".tmp", content)
        disk.rename(path + ".tmp", path)
        self._unsynced_names |= {path, self.path}

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
        base_offset = self.end_offset
        epochs = self.epochs
        if epochs.latest_epoch != leader_epoch:
            epochs.assign(leader_epoch, base_offset)
        marker: EndMarker | None = None
        if header[10] >= 0:
            if header.is_control:
                marker = read_end_marker(validated.view, header)
            judged = self._judge_producer(header, marker, origin, verification, must_be_verified)
            if judged is not None:
                return judged
        position = header[0]
        stamp(validated.view, position, base_offset, leader_epoch)
        header = _new(BatchHeader, (position, base_offset, header[2], leader_epoch, *header[4:]))
        size = header[2] + 12
        data = validated.view
        if len(data) != size:
            data = memoryview(data)[position : position + size]
        self._write(data, [header], now_ms)
        if header[10] >= 0:
            self._note_producer(header, marker)
        if self.end_offset - self.recovery_point >= self.config.flush_messages:
            self.flush()
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
                return self._duplicate(written)
        if (
            must_be_verified
            and header.is_transactional
            and not producers.has_open_transaction(header.producer_id)
            and not producers.is_verified(header.producer_id, verification)
        ):
            return Refused(int(ErrorCode.INVALID_TXN_STATE), while_appending=True)
        code = producers.refuse_batch(header, origin)
        if not code:
            return None
        if origin == Origin.CLIENT and (written := self._find_written(header)) is not None:
            return self._duplicate(written)
        return Refused(code, while_appending=True)

    @guarded
    def _find_written(self, header: BatchHeader) -> WrittenBatch | None:
        term = self.epochs.latest
        below = self.producers.forgotten_below(header, 0 if term is None else term.start_offset)
        if below is None:
            return None
        return find_written(header, self.producers.producers[header.producer_id], below, self._segments)

    def _duplicate(self, written: WrittenBatch) -> Duplicate:
        return Duplicate(written.first_offset, written.last_offset, written.timestamp, self.log_start_offset)

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
        if self.end_offset - self.recovery_point >= self.config.flush_messages:
            self.flush()
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
            if header.is_control:
                read_end_marker(view, header)  # one that makes no sense must not get into the log
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
        if self._producers is None:
            self._producers = self._load_producers()
        last = headers[-1]
        last_offset = last[1] + last[7]
        newest = last[9] if len(headers) == 1 else max(header[9] for header in headers)
        try:
            segment = self._segments[-1]
            if segment.must_roll(self.config, len(data), last_offset, newest, now_ms):
                segment = self._roll_to(headers[0][1], now_ms)
            segment.append(data, headers, self.config.index_interval_bytes)
            segment.modified_ms = now_ms
        except OSError as error:
            self._take_back()
            directory.fail(error)
        except CorruptRecords as error:
            directory.fail_as_corrupt(self.partition, error)
        self.end_offset = self._written_end = last_offset + 1
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

    @guarded
    def roll(self, now_ms: int) -> Segment:
        """Begin a new segment at the end of the log."""
        active = self._segments[-1]
        return active if active.base_offset == self.end_offset else self._roll_to(self.end_offset, now_ms)

    def _roll_to(self, base_offset: int, now_ms: int) -> Segment:
        """Close the books of the active segment and begin another one at ``base_offset``."""
        active = self._segments[-1]
        if base_offset <= active.base_offset:
            raise InvariantBroken(f"{self.partition} rolls to {base_offset}, not behind {active.base_offset}")
        if base_offset != self._written_end:
            self._vouch_for_hole(base_offset)
        active.save_indexes()
        segment = Segment(self.home, base_offset, created_ms=now_ms, modified_ms=now_ms)
        segment.create()
        self._segments.append(segment)
        self._tail = None
        self._unsynced_names.add(self.path)
        self._save_snapshot(base_offset)
        self.home.directory.rolled.add(self.partition)
        return segment

    def _vouch_for_hole(self, base_offset: int) -> None:
        """A hole between segments is what a lost tail looks like: let no restart take it for one."""
        self.flush()
        self.recovery_point = base_offset
        self.home.directory.raise_recovery_point(self.partition, base_offset)

    def _save_snapshot(self, offset: int) -> None:
        save_snapshot(self.home, self.producers, offset)

    # -- truncate ----------------------------------------------------------------------------------

    @guarded
    def truncate_to(self, offset: int) -> bool:
        """Cut off everything at and behind an offset; False if there was nothing to cut."""
        if offset >= self.end_offset:
            self.epochs.truncate_from_end(self.end_offset)
            self._save_epochs()
            return False
        if offset < self._segments[0].base_offset:
            self._start_anew(offset)
            return True
        home = self.home
        home.directory.lower_recovery_point(self.partition, offset)
        self._note_cut(offset)
        keep = self._segment_at(offset) + 1
        self._delete(self._segments[: keep - 1 : -1], self._segments[:keep])
        active = self._segments[-1]
        self._written_end = active.truncate_to(offset)
        if offset < self.recovery_point:
            active.file().sync()
        self.recovery_point = min(self.recovery_point, offset)
        self.end_offset = offset
        self.log_start_offset = min(self.log_start_offset, offset)
        self.high_watermark = min(self.high_watermark, offset)
        self.first_dirty_offset = min(self.first_dirty_offset, offset)
        self.epochs.truncate_from_end(offset)
        self._save_epochs()  # or a later start would find epochs there that the log no longer has
        delete_snapshots(home, above=offset)
        self._producers = rebuild_producers(home, self._segments, self.log_start_offset, offset, False)
        self._save_snapshot(offset)
        return True

    @guarded
    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Drop everything; the log is empty and begins at ``offset``."""
        self._start_anew(offset)

    def _start_anew(self, offset: int) -> None:
        home = self.home
        home.directory.lower_recovery_point(self.partition, min(offset, self.log_start_offset))
        self._note_cut(min(offset, self.log_start_offset))
        modified_ms = self._segments[-1].modified_ms
        segment = Segment(home, offset, created_ms=modified_ms, modified_ms=modified_ms)
        self._delete(self._segments[::-1], [segment])
        segment.create()
        home.directory.disk.sync_directory(self.path)
        self.log_start_offset = self.end_offset = self.high_watermark = self.recovery_point = offset
        self._written_end = offset
        self.first_dirty_offset = 0
        self.epochs.clear()
        self._save_epochs()
        delete_snapshots(home, above=-1)
        self._producers = ProducerState(offset)

    def _delete(self, gone: list[Segment], rest: list[Segment]) -> None:
        """Take segments out of the log, in this order; their files vanish later."""
        self.home.cancel_cleaning()
        if not gone:
            return
        directory = self.home.directory
        for segment in gone:
            for path in segment.rename_to_deleted():
                directory.discard(path, self.config.file_delete_delay_ms)
        directory.disk.sync_directory(self.path)
        self._segments = rest

    def put_in_place(self, old: list[Segment], new: Segment) -> None:
        """Let one segment stand for several that it was cleaned from."""
        at = self._segments.index(old[0])
        assert self._segments[at : at + len(old)] == old, "only neighbours are cleaned into one segment"
        self._segments[at : at + len(old)] = [new]

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
        assert self.start_without(count, now_ms) <= self.log_start_offset, (
            "no reader may ask for them any more"
        )
        self.home.directory.note_log_start(self.partition, self.log_start_offset)
        self._delete(self._segments[:count], self._segments[count:])

    @guarded
    def start_without(self, count: int, now_ms: int) -> int:
        """Where the log would begin without its oldest segments; if these are all, an empty one is added."""
        if count == len(self._segments):
            self._roll_to(self.end_offset, now_ms)
        return self._segments[count].base_offset

    @guarded
    def settle_after_crash(self) -> None:
        """Bring epochs and producers in line with the batches that survived, and note them down."""
        epochs = self.epochs
        for _, header in self.batches_from(self.recovery_point):
            if header.partition_leader_epoch > epochs.latest_epoch:
                epochs.assign(header.partition_leader_epoch, header.base_offset)
        self._save_epochs()
        delete_snapshots(self.home, above=self.end_offset, up_to=self.log_start_offset)
        self._save_snapshot(self.end_offset)

    # -- flush and close ---------------------------------------------------------------------------

    def _save_epochs(self) -> None:
        epochs = self._epochs
        if epochs is not None and epochs.dirty:
            self._replace_unsynced(LEADER_EPOCHS, encode_epochs(epochs.entries()))
            epochs.dirty = False

    @guarded
    def flush_work(self) -> FlushWork | None:
        """What must be synced so that everything up to now survives a power cut; ``None`` if nothing."""
        if self.recovery_point >= self.end_offset:
            return None
        paths, unsynced = self._unsynced()
        files = [segment.file() for segment in unsynced]
        return FlushWork(self.home.directory, files, paths, self.end_offset, self.cuts)

    def _unsynced(self) -> tuple[list[str], list[Segment]]:
        """Small files and names to be synced, written before; and the segments whose batches are to be."""
        self._save_epochs()
        paths = sorted(self._unsynced_names, reverse=True)  # files before the directory that names them
        self._unsynced_names.clear()
        unsynced = self._segments[self._segment_at(self.recovery_point - 1) :]
        for segment in unsynced[:-1]:
            segment.save_indexes()
            paths += [segment.path(suffix) for suffix in (".index", ".timeindex", txn_index.SUFFIX)]
        paths += [segment.path(producer_state.SUFFIX) for segment in unsynced[1:]]
        if len(unsynced) > 1:
            paths.append(self.path)
        self.home.directory.rolled.discard(self.partition)
        return paths, unsynced

    def flushed(self, work: FlushWork, now_ms: int = 0) -> None:
        """The work is done: a restart need not look below its end, unless that was cut off meanwhile."""
        self._flushed_at_ms = now_ms
        if work.cuts == self.cuts:
            self.recovery_point = max(self.recovery_point, work.end_offset)

    def flush(self) -> None:
        """Sync at once."""
        work = self.flush_work()
        if work is not None:
            work()
            self.flushed(work)

    def is_flush_due(self, now_ms: int) -> bool:
        """Whether ``flush.ms`` has passed since the last flush and there is anything to sync."""
        is_late = now_ms - self._flushed_at_ms >= self.config.flush_ms
        return is_late and self.recovery_point < self.end_offset

    @guarded
    def closing_work(self) -> FlushWork:
        """Write everything that a clean restart wants to find; what must be synced before it can count.

        It holds no open file: thousands of logs may have theirs at a time.
        """
        if self._producers is not None and self._producers.snapshot_offset != self.end_offset:
            self._save_snapshot(self.end_offset)
            self._unsynced_names |= {self.home.file(self.end_offset, producer_state.SUFFIX), self.path}
        paths: list[str] = []
        if self.recovery_point < self.end_offset:
            paths, unsynced = self._unsynced()
            paths += [segment.path(LOG_SUFFIX) for segment in unsynced]
        self._save_epochs()
        active = self._segments[-1]
        paths += [*sorted(self._unsynced_names, reverse=True), *active.save_indexes()]
        if active.has_aborted:
            paths.append(active.path(txn_index.SUFFIX))
        self._unsynced_names.clear()
        return FlushWork(self.home.directory, [], paths, self.end_offset, self.cuts)

    def close(self) -> None:
        """Write everything that a clean restart wants to find, synced; let go of all files."""
        work = self.closing_work()
        work()
        self.closed(work)

    def closed(self, work: FlushWork) -> None:
        """The closing work is synced: let go of all files."""
        self.flushed(work)
        self.release()

    def release(self) -> None:
        """Let go of all open files."""
        for segment in self._segments:
            segment.close_file()


__all__ = ["Appended", "Duplicate", "FlushWork", "Log", "LogSlice"]
