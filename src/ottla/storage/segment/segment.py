"""A segment of a log: one ``.log`` file of whole batches, and the indexes that find them."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from zlib import crc32

from ottla.config.log import LogConfig
from ottla.records.batch import (
    HEADER_SIZE,
    LOG_OVERHEAD,
    NO_TIMESTAMP,
    BatchHeader,
    Buffer,
    CorruptRecords,
    crc_is_valid,
    read_header,
)
from ottla.storage.disk.directory import PartitionHome
from ottla.storage.disk.file_names import (
    DELETED_SUFFIX,
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    SEGMENT_SUFFIXES,
    SNAPSHOT_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
)
from ottla.storage.disk.port import File
from ottla.storage.segment import offset_index, time_index
from ottla.storage.segment.offset_index import OffsetIndex, decode_offset_index
from ottla.storage.segment.time_index import TimeIndex, decode_time_index
from ottla.storage.segment.txn_index import AbortedTransaction, decode_txn_index, encode_aborted

SCAN_BYTES = 8192
REBUILT_INTERVAL_BYTES = 4096
"""Bytes between entries of a rebuilt index: Kafka's default, whatever the topic's setting is."""
RELATIVE_OFFSET_MAX = 2**31 - 1
TAIL_BOUNDARIES_MAX = 32


class Segment:
    """Batches from ``base_offset`` on. Files are opened and indexes read when first needed."""

    __slots__ = (
        "_aborted",
        "_file",
        "_first_timestamp",
        "_index",
        "_max_timestamp",
        "_max_timestamp_offset",
        "_times",
        "base_offset",
        "bytes_since_entry",
        "created_ms",
        "home",
        "indexes_changed",
        "modified_ms",
        "recently_used",
        "size",
        "tail",
    )

    def __init__(
        self,
        home: PartitionHome,
        base_offset: int,
        *,
        size: int = 0,
        created_ms: int = 0,
        modified_ms: int = 0,
    ) -> None:
        self.home = home
        self.base_offset = base_offset
        self.size = size
        self.created_ms = created_ms
        self.modified_ms = modified_ms
        self.bytes_since_entry = 0
        self.recently_used = False
        self.indexes_changed = False
        self.tail: dict[int, int] = {}
        """Where the last appended batches end: position by end offset. Most readers ask for one of these."""
        self._file: File | None = None
        self._index: OffsetIndex | None = None
        self._times: TimeIndex | None = None
        self._aborted: list[AbortedTransaction] | None = None
        self._first_timestamp: int | None = None
        self._max_timestamp: int | None = None
        self._max_timestamp_offset = base_offset

    # -- files -------------------------------------------------------------------------------------

    def path(self, suffix: str) -> str:
        return self.home.file(self.base_offset, suffix)

    def file(self) -> File:
        """The open ``.log`` file."""
        file = self._file
        if file is None:
            file = self._file = self.home.directory.open(self.path(LOG_SUFFIX))
            self.home.directory.open_files.opened(self)
        self.recently_used = True
        return file

    def create(self) -> None:
        """Create the ``.log`` file; empty it if it exists."""
        self._file = self.home.directory.open(self.path(LOG_SUFFIX), create=True)
        if self._file.size():
            self._file.truncate(0)
        self.home.directory.open_files.opened(self)
        self._index = OffsetIndex(self.base_offset)
        self._times = TimeIndex(self.base_offset)
        self._aborted = []
        self._max_timestamp = NO_TIMESTAMP
        self.indexes_changed = True

    def release_file(self) -> None:
        """Drop the open file; slices that readers hold keep it open."""
        self._file = None

    def close_file(self) -> None:
        self._file = None
        self.home.directory.open_files.closed(self)

    # -- indexes -----------------------------------------------------------------------------------

    @property
    def index(self) -> OffsetIndex:
        if self._index is None:
            self._load_indexes()
        assert self._index is not None, "indexes were just loaded"
        return self._index

    @property
    def times(self) -> TimeIndex:
        if self._times is None:
            self._load_indexes()
        assert self._times is not None, "indexes were just loaded"
        return self._times

    @property
    def aborted(self) -> list[AbortedTransaction]:
        """Aborted transactions whose marker is in this segment."""
        if self._aborted is None:
            content = self._read_if_there(TXN_INDEX_SUFFIX)
            decoded = decode_txn_index(content or b"", self.base_offset)
            self._aborted = decoded if decoded is not None else []
        return self._aborted

    def _read_if_there(self, suffix: str) -> bytes | None:
        try:
            return self.home.directory.disk.read_file(self.path(suffix))
        except FileNotFoundError:
            return None

    def _load_indexes(self) -> None:
        """Read both index files; rebuild them from the log if one is missing or corrupt."""
        offsets = self._read_if_there(OFFSET_INDEX_SUFFIX)
        times = self._read_if_there(TIME_INDEX_SUFFIX)
        self._index = self._times = None
        if offsets is not None and times is not None:
            self._index = decode_offset_index(self.base_offset, offsets, self.size)
            self._times = decode_time_index(self.base_offset, times)
        if self._index is None or self._times is None or (self.size and not len(self._times)):
            self.rebuild_indexes()
            return
        if self._max_timestamp is None:
            self._max_timestamp, self._max_timestamp_offset = self._times.last

    def rebuild_indexes(self) -> None:
        """Rebuild the indexes from the batches of the log file."""
        self.begin_rebuild()
        for header in self.scan(0):
            self.note(header, header.position, REBUILT_INTERVAL_BYTES)
        self.bytes_since_entry = 0

    def begin_rebuild(self) -> None:
        """Empty the indexes; then ``note`` every batch, and reset ``bytes_since_entry`` as Kafka does."""
        self._index = OffsetIndex(self.base_offset)
        self._times = TimeIndex(self.base_offset)
        self._max_timestamp = NO_TIMESTAMP
        self._max_timestamp_offset = self.base_offset
        self.bytes_since_entry = 0
        self.indexes_changed = True

    def note(self, header: BatchHeader, position: int, interval_bytes: int) -> None:
        """Count a batch at a position; index it if enough bytes were written since the last entry."""
        index, times, largest = self._index, self._times, self._max_timestamp
        assert index is not None, "a segment is indexed before it grows"
        assert times is not None, "a segment is indexed before it grows"
        assert largest is not None, "a segment knows its largest timestamp before it grows"
        if header[9] > largest:
            largest = self._max_timestamp = header[9]
            self._max_timestamp_offset = header[1] + header[7]
        if self.bytes_since_entry > interval_bytes:
            index.append(header[1] + header[7], position)
            times.maybe_append(largest, self._max_timestamp_offset)
            self.bytes_since_entry = 0
            self.indexes_changed = True
        self.bytes_since_entry += header[2] + LOG_OVERHEAD

    def save_indexes(self) -> list[str]:
        """Write the indexes if they changed, with a last entry in the time index; returns the paths."""
        if self._index is None or self._times is None or self._max_timestamp is None:
            return []
        if self._max_timestamp > self._times.last[0]:
            self._times.maybe_append(self._max_timestamp, self._max_timestamp_offset)
            self.indexes_changed = True
        if not self.indexes_changed:
            return []
        disk = self.home.directory.disk
        paths = [self.path(OFFSET_INDEX_SUFFIX), self.path(TIME_INDEX_SUFFIX)]
        disk.write_file(paths[0], self._index.encoded())
        disk.write_file(paths[1], self._times.encoded())
        self.indexes_changed = False
        return paths

    def rolled(self) -> None:
        """No more batches come: write the indexes, forget the tail."""
        self.save_indexes()
        self.tail.clear()

    @property
    def has_aborted(self) -> bool:
        """Whether aborted transactions are known in memory."""
        return bool(self._aborted)

    def add_aborted(self, entry: AbortedTransaction) -> None:
        """Append to the transaction index; the first entry creates the file."""
        self.aborted.append(entry)
        file = self.home.directory.open(self.path(TXN_INDEX_SUFFIX), create=True)
        file.append(encode_aborted(entry))
        file.close()

    def save_aborted(self, entries: list[AbortedTransaction]) -> None:
        """Replace the transaction index."""
        self._aborted = entries
        path = self.path(TXN_INDEX_SUFFIX)
        disk = self.home.directory.disk
        if entries:
            disk.write_file(path, b"".join(map(encode_aborted, entries)))
        elif disk.exists(path):
            disk.remove(path)

    # -- times -------------------------------------------------------------------------------------

    @property
    def max_timestamp(self) -> int:
        """The largest timestamp in the segment, or -1."""
        if self._max_timestamp is None:
            self._load_indexes()
        assert self._max_timestamp is not None, "indexes were just loaded"
        return self._max_timestamp

    @property
    def max_timestamp_offset(self) -> int:
        """The last offset of the first batch that has the largest timestamp."""
        if self._max_timestamp is None:
            self._load_indexes()
        return self._max_timestamp_offset

    @property
    def largest_timestamp(self) -> int:
        """The timestamp for retention: the largest in the segment, or the file's modification time."""
        largest = self.max_timestamp
        return largest if largest >= 0 else self.modified_ms

    @property
    def first_timestamp(self) -> int:
        """The largest timestamp of the first batch, or -1."""
        first = self._first_timestamp
        if first is None:
            header = next(self.scan(0), None)
            if header is None:
                return NO_TIMESTAMP
            first = self._first_timestamp = header.max_timestamp
        return first

    def must_roll(
        self, config: LogConfig, size: int, last_offset: int, max_timestamp: int, now_ms: int
    ) -> bool:
        """Whether batches of this size, last offset and largest timestamp go into a new segment."""
        mine = self.size
        if mine + size > config.segment_bytes:
            return mine > 0
        if last_offset - self.base_offset > RELATIVE_OFFSET_MAX:
            return True
        if not mine:
            return False
        first = self._first_timestamp
        if first is None:
            first = self.first_timestamp
        waited_ms = max_timestamp - first if first >= 0 else now_ms - self.created_ms
        limit_ms = config.segment_ms
        if config.max_compaction_lag_ms < limit_ms and config.is_compacted:
            limit_ms = config.max_compaction_lag_ms
        if config.segment_jitter_ms:
            limit_ms -= self._jitter_below(min(config.segment_jitter_ms, limit_ms))
        if waited_ms > limit_ms:
            return True
        index_bytes = config.segment_index_bytes
        if mine < HEADER_SIZE * (index_bytes // time_index.ENTRY_SIZE - 2):
            return False  # there is an entry for every batch at most
        index, times = self._index, self._times
        return (index is not None and len(index) >= index_bytes // offset_index.ENTRY_SIZE) or (
            times is not None and len(times) >= index_bytes // time_index.ENTRY_SIZE - 1
        )

    def _jitter_below(self, bound_ms: int) -> int:
        """How much earlier than ``segment.ms`` this segment rolls: by its name, not random, so that a
        repeated simulation rolls at the same moments."""
        return crc32(f"{self.home.partition}:{self.base_offset}".encode()) % max(1, bound_ms)

    # -- batches -----------------------------------------------------------------------------------

    def append(self, data: Buffer, headers: Sequence[BatchHeader], interval_bytes: int) -> None:
        """Write whole batches in one call and index them. After a failure call ``take_back``."""
        if self._max_timestamp is None or self._index is None:
            self._load_indexes()
        file = self.file()
        size = len(data)
        written = file.append(data)
        if written != size:
            self._write_rest(file, memoryview(data)[written:])
        if not self.size:
            self._first_timestamp = headers[0][9]
        shift = self.size - headers[0][0]
        for header in headers:
            largest = self._max_timestamp
            if largest is None or header[9] > largest or self.bytes_since_entry > interval_bytes:
                self.note(header, header[0] + shift, interval_bytes)
            else:
                self.bytes_since_entry += header[2] + LOG_OVERHEAD
        self.size += size
        tail = self.tail
        if len(tail) >= TAIL_BOUNDARIES_MAX:
            del tail[next(iter(tail))]
        last = headers[-1]
        tail[last[1] + last[7] + 1] = self.size

    def _write_rest(self, file: File, rest: memoryview) -> None:
        """Continue a short write. If that fails, remove what was written of the batch."""
        try:
            while rest:
                rest = rest[file.append(rest) :]
        except OSError:
            file.truncate(self.size)
            raise

    def take_back(self) -> None:
        """Cut off what a failed write may have left behind the last whole batch, if the disk allows it."""
        if self._file is not None:
            with suppress(OSError):
                self._file.truncate(self.size)

    def scan(self, position: int) -> Iterator[BatchHeader]:
        """The headers of all batches from a position on; ``position`` is the batch's place in the file.

        Ends before the first incomplete batch; raises ``CorruptRecords`` for an invalid header.
        """
        file = self.file()
        size = self.size
        while size - position >= HEADER_SIZE:
            chunk = file.pread(min(SCAN_BYTES, size - position), position)
            at = 0
            while len(chunk) - at >= HEADER_SIZE:
                header = read_header(chunk, at)
                if header.length + LOG_OVERHEAD > size - position - at:
                    return
                yield tuple.__new__(BatchHeader, (position + at, *header[1:]))
                at += header.length + LOG_OVERHEAD
            if at == 0:
                return
            position += at

    def locate(self, offset: int) -> BatchHeader | None:
        """The first batch that ends at or behind an offset; ``None`` if all end before it."""
        entry_offset, position = self.index.floor(offset)
        is_first = position > 0
        try:
            for header in self.scan(position):
                if is_first and not self._agrees(header, entry_offset):
                    break
                is_first = False
                if header.last_offset >= offset:
                    return header
        except CorruptRecords:
            if not position:
                raise
            is_first = True
        if is_first:
            self.rebuild_indexes()
            return self.locate(offset)
        return None

    def _agrees(self, header: BatchHeader, entry_offset: int) -> bool:
        return self.base_offset <= header.base_offset <= entry_offset

    def read_batch(self, header: BatchHeader) -> bytes:
        """A batch's bytes, with a valid checksum."""
        content = self.file().pread(header.size, header.position)
        if len(content) != header.size:
            raise CorruptRecords(f"the batch at {header.base_offset} is cut short")
        if not crc_is_valid(content, read_header(content)):
            raise CorruptRecords(f"the batch at {header.base_offset} fails its checksum")
        return content

    def truncate_to(self, offset: int) -> int:
        """Cut off every batch that contains or follows an offset; returns the new end offset."""
        self.tail.clear()
        header = self.locate(offset)
        if header is not None:
            self.cut_at(header.position)
        self.index.truncate_to(offset)
        self.times.truncate_to(offset)
        if any(entry.last_offset >= offset for entry in self.aborted):
            self.save_aborted([entry for entry in self.aborted if entry.last_offset < offset])
        self._max_timestamp, self._max_timestamp_offset = self.times.last
        end_offset = self.base_offset
        start = min(self.index.floor(self.times.last[1])[1], self.index.floor(offset)[1])
        for kept in self.scan(start):
            end_offset = kept.end_offset
            if kept.max_timestamp > self._max_timestamp:
                self._max_timestamp, self._max_timestamp_offset = kept.max_timestamp, kept.last_offset
        if self.size == 0:
            self._first_timestamp = None
        self.bytes_since_entry = 0
        self.indexes_changed = True
        return end_offset

    def cut_at(self, position: int) -> None:
        """Truncate the file at a position."""
        self.tail.clear()
        self.file().truncate(position)
        self.size = position

    def rename_to_deleted(self, *, with_snapshot: bool = True) -> list[str]:
        """Rename all files of the segment to ``.deleted``; returns their new paths."""
        self.close_file()
        disk = self.home.directory.disk
        renamed = []
        for suffix in (*SEGMENT_SUFFIXES, SNAPSHOT_SUFFIX) if with_snapshot else SEGMENT_SUFFIXES:
            path = self.path(suffix)
            if disk.exists(path):
                disk.rename(path, path + DELETED_SUFFIX)
                renamed.append(path + DELETED_SUFFIX)
        return renamed
