"""Find an offset by timestamp, a portion at a time: a search may have to read much.

A batch is opened if its header says that it has such a record. If the records of a batch with a valid
checksum contradict its header, or cannot be read, its producer sent them so: the header decides. The answer
may then be too early, never too late.
"""

from collections.abc import Generator, Iterator
from typing import NamedTuple, TypeAlias

from ottla.records.batch import BatchHeader, CorruptRecords
from ottla.records.record import times_and_offsets
from ottla.records.validate import GROWTH_MAX
from ottla.storage.disk.directory import guarded
from ottla.storage.log.log import Log
from ottla.storage.segment.segment import Segment

BATCHES_PER_PORTION = 256
RECORDS_PER_PORTION = 1024
FALSE_CLAIMS_MAX = 32
"""After this many batches whose records contradict the header, the next header decides."""
RECORDS_MAX = 1 << 20
"""After about this many records the header of their batch decides."""


class FoundOffset(NamedTuple):
    """A record found by its time."""

    timestamp: int
    offset: int
    leader_epoch: int


Search: TypeAlias = Generator[None, None, FoundOffset | None]


class TimeSearch:
    """The first record at or behind the log's start with at least this timestamp.

    Without a timestamp: the first record with the largest one; as in Kafka it may be below the log start, as
    long as its segment exists.
    """

    __slots__ = ("_at", "_cuts", "_log", "_records_left", "_steps", "_timestamp", "found", "home")

    def __init__(self, log: Log, timestamp: int | None) -> None:
        self.home = log.home
        self.found: FoundOffset | None = None
        """The answer, once the search is done; ``None`` if there is no such record."""
        self._log = log
        self._timestamp = timestamp
        self._at: Segment | None = None
        self._cuts = log.cuts
        self._records_left = RECORDS_MAX
        self._steps = self._begin()

    def _begin(self) -> Search:
        self._at = None
        self._cuts = self._log.cuts
        return self._latest() if self._timestamp is None else self._first_since(self._timestamp)

    @guarded
    def go_on(self) -> bool:
        """Search one portion; True when done. Starts again if the log lost the segment that is searched."""
        if self._is_void():
            self._steps = self._begin()
        try:
            next(self._steps)
        except StopIteration as done:
            self.found = done.value
            return True
        return False

    def _is_void(self) -> bool:
        if self._cuts != self._log.cuts:
            return True
        return self._at is not None and not self._log.holds(self._at)

    def _first_since(self, timestamp: int) -> Search:
        false_claims = 0
        for segment in self._log.segments:
            self._at = segment
            yield
            if segment.max_timestamp < timestamp:
                continue
            start = max(segment.times.floor(timestamp)[1], self._log.log_start_offset)
            for looked_at, header in enumerate(_batches_from(segment, start)):
                if looked_at % BATCHES_PER_PORTION == BATCHES_PER_PORTION - 1:
                    yield
                if header.max_timestamp < timestamp or not header.record_count:
                    continue
                found = yield from self._first_in(segment, header, timestamp, self._log.log_start_offset)
                if found is not None:
                    return found
                false_claims += 1
                if false_claims == FALSE_CLAIMS_MAX:
                    return _by_its_header(header, self._log.log_start_offset)
        return None

    def _latest(self) -> Search:
        latest: Segment | None = None
        for segment in self._log.segments:
            self._at = segment
            yield
            if segment.size and (latest is None or segment.max_timestamp > latest.max_timestamp):
                latest = segment
        if latest is None:
            return None
        self._at = latest
        yield
        for header in _batches_from(latest, latest.max_timestamp_offset):
            if header.max_timestamp == latest.max_timestamp:
                found = yield from self._first_in(latest, header, header.max_timestamp, 0)
                return found or _by_its_header(header, 0)
        return None

    def _first_in(self, segment: Segment, header: BatchHeader, timestamp: int, start_offset: int) -> Search:
        """The first record of a batch at or after both a timestamp and an offset."""
        content = segment.read_batch(header)
        limit = GROWTH_MAX * max(self._log.config.max_message_bytes, header.size)
        try:
            records = times_and_offsets(content, header._replace(position=0), limit)
            for looked_at, (time, offset) in enumerate(records):
                if time >= timestamp and offset >= start_offset:
                    if header.base_offset <= offset <= header.last_offset:
                        return FoundOffset(time, offset, header.partition_leader_epoch)
                    return _by_its_header(header, start_offset)
                if looked_at % RECORDS_PER_PORTION == RECORDS_PER_PORTION - 1:
                    self._records_left -= RECORDS_PER_PORTION
                    if self._records_left <= 0:
                        return _by_its_header(header, start_offset)
                    yield
        except CorruptRecords:
            return _by_its_header(header, start_offset)
        return None


def _by_its_header(header: BatchHeader, start_offset: int) -> FoundOffset:
    """The answer by the batch's header alone."""
    offset = max(header.base_offset, start_offset)
    return FoundOffset(header.max_timestamp, offset, header.partition_leader_epoch)


def _batches_from(segment: Segment, offset: int) -> Iterator[BatchHeader]:
    """The headers from the batch that contains an offset."""
    first = segment.locate(offset)
    return segment.scan(first.position) if first is not None else iter(())
