"""What can be asked of a log: its state, its batches by offset."""

from bisect import bisect_right
from collections.abc import Iterator

from ottla.config.log import LogConfig
from ottla.model.ids import TopicId, TopicPartition
from ottla.records.batch import BatchHeader, CorruptRecords
from ottla.storage.checkpoints import LEADER_EPOCHS, CorruptCheckpoint, decode_epochs
from ottla.storage.leader_epochs import LeaderEpochs
from ottla.storage.log_directory import PartitionHome, guarded
from ottla.storage.outcomes import LogSlice
from ottla.storage.producer_rebuild import rebuild_producers
from ottla.storage.producer_state import ProducerState
from ottla.storage.segment import Segment
from ottla.storage.txn_index import AbortedTransaction

NEVER_CUT = 2**63 - 1


class LogReader:
    """The batches of one partition, in segments, to be read."""

    __slots__ = (
        "_epochs",
        "_flushed_at_ms",
        "_lowest_cut",
        "_producers",
        "_segments",
        "_tail",
        "_unsynced_names",
        "_written_end",
        "config",
        "cuts",
        "end_offset",
        "first_dirty_offset",
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
        self.cuts = 0
        """How often the log was truncated: work begun before a cut is void."""
        self._lowest_cut = NEVER_CUT
        self.first_dirty_offset = 0
        """Where compaction has to go on."""
        self._unsynced_names: set[str] = set()
        self._written_end = end_offset
        """Behind the last batch in the file; a cut inside a batch leaves the end offset behind it."""

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

    def holds(self, segment: Segment) -> bool:
        """Whether a segment is still one of the log's."""
        return self._segments[self._segment_at(segment.base_offset)] is segment

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
        except (FileNotFoundError, CorruptCheckpoint):
            epochs = LeaderEpochs()
        if not len(epochs) and self.end_offset > self.log_start_offset:
            epochs = self._epochs_of_batches()
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
        start = self.log_start_offset
        if not self.was_clean:
            # A segment scanned again is taken whole, also what lies below the start of the log.
            start = min(start, self._segments[self._segment_at(start)].base_offset)
        return rebuild_producers(self.home, self._segments, start, self.end_offset, self.was_clean)

    @property
    def last_stable_offset(self) -> int:
        """Where readers of committed data must stop."""
        unstable = self.producers.first_unstable_offset(self.high_watermark)
        if unstable is None:
            return self.high_watermark
        return min(max(unstable, self.log_start_offset), self.high_watermark)

    def expire_producers(self, now_ms: int, expiration_ms: int) -> None:
        """Forget producers that were silent for too long; a state that is not loaded is left alone."""
        if self._producers is not None:
            self._producers.expire(now_ms, expiration_ms)

    def set_high_watermark(self, offset: int) -> int:
        """Set it, held between the log's start and end; returns what it became."""
        self.high_watermark = max(self.log_start_offset, min(offset, self.end_offset))
        return self.high_watermark

    def _note_cut(self, offset: int) -> None:
        """Records at and behind an offset are about to go; others may come in their place."""
        self.cuts += 1
        self._lowest_cut = min(self._lowest_cut, offset)
        self._tail = None

    def take_lowest_cut(self) -> int:
        """The lowest offset at which the log was cut since this was last asked: a copy is true below it."""
        lowest, self._lowest_cut = self._lowest_cut, NEVER_CUT
        return lowest

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
            directory.fail_as_corrupt(self.partition, error)

    def _read(self, offset: int, max_bytes: int, limit_offset: int, min_one_batch: bool) -> LogSlice:
        directory = self.home.directory
        found = self._place_of(offset)
        if found is None:
            return LogSlice(directory, None, 0, 0)
        segment, start = found
        end, is_behind = self._end_position(segment, limit_offset)
        available = end - start
        if available > max_bytes:
            end = self._cut(segment, start, max_bytes, min_one_batch)
        file = segment.file() if end > start else None
        size = max(0, end - start)
        return LogSlice(
            directory, file, start, size, segment.base_offset, available=available, is_behind=is_behind
        )

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

    def _end_position(self, segment: Segment, limit_offset: int) -> tuple[int, bool]:
        """Where in a segment the batches below an offset end, and whether later segments have more."""
        if segment is not self._segments[-1]:
            following = self._segments[bisect_right(self._segments, segment.base_offset, key=_base_offset)]
            if limit_offset >= following.base_offset:
                return segment.size, limit_offset > following.base_offset
        elif limit_offset >= self.end_offset:
            return segment.size, False
        elif self._tail is not None and (position := self._tail.get(limit_offset)) is not None:
            return position, False
        header = segment.locate(limit_offset)
        return header.position if header is not None else segment.size, False

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

    # -- transactions ------------------------------------------------------------------------------

    @guarded
    def aborted_transactions(
        self, fetch_offset: int, found: LogSlice, limit_offset: int
    ) -> list[AbortedTransaction]:
        """Aborted transactions that may have records in a slice; more than need be, never fewer."""
        at = self._segment_at(max(found.segment_base_offset, self._segments[0].base_offset))
        bound = self._segments[at].index.offset_at_or_above_position(found.position + found.size)
        if bound is None:
            bound = self._segments[at + 1].base_offset if at + 1 < len(self._segments) else self.end_offset
        bound = min(bound, limit_offset)
        collected = []
        for segment in self._segments[self._segment_at(fetch_offset) :]:
            for entry in segment.aborted:
                if entry.last_offset >= fetch_offset and entry.first_offset < bound:
                    collected.append(entry)
                if entry.last_stable_offset >= bound:
                    return collected
        return collected


def _base_offset(segment: Segment) -> int:
    return segment.base_offset
