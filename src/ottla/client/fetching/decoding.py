"""From fetched bytes to records, without aborted ones, those before the fetch offset, and markers."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ottla.client.errors import CorruptBatch
from ottla.model.ids import TopicPartition
from ottla.records.batch import BatchHeader, Buffer, CorruptRecords, batches, crc_is_valid
from ottla.records.control import read_end_marker
from ottla.records.record import Record, read_records
from ottla.wire.apis.fetch import PartitionData

NO_EPOCH = -1


class Position(NamedTuple):
    """The next offset, and the leader epoch of the record before it (-1 if that is not known)."""

    offset: int
    leader_epoch: int = NO_EPOCH


@dataclass(frozen=True, slots=True)
class Chunk:
    """The bytes of one response for a partition: whole batches, the last one perhaps incomplete."""

    partition: TopicPartition
    fetch_offset: int
    data: Buffer
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    aborted: tuple[tuple[int, int], ...] = ()
    """Producer id and first offset of the aborted transactions."""

    @classmethod
    def of(cls, partition: TopicPartition, fetch_offset: int, row: PartitionData, data: Buffer) -> "Chunk":
        """A chunk from a broker's row, with ``data`` as its records."""
        aborted = tuple((one.producer_id, one.first_offset) for one in row.aborted_transactions or ())
        ends = (row.high_watermark, row.last_stable_offset, row.log_start_offset)
        return cls(partition, fetch_offset, data, *ends, aborted)

    def end_offset(self) -> int | None:
        """Where the next fetch begins; ``None`` if there is no whole batch."""
        end = self.end()
        return end.offset if end is not None else None

    def end(self) -> Position | None:
        """Where the next fetch begins, and the epoch before it; ``None`` if there is no whole batch.

        Corrupt bytes after whole batches are found again by the next fetch.
        """
        end: Position | None = None
        try:
            for header in batches(self.data):
                end = Position(header.end_offset, header.partition_leader_epoch)
        except CorruptRecords as corrupt:
            if end is None:
                raise CorruptBatch(self.partition, str(corrupt)) from corrupt
        return end


class ChunkReader:
    """Reads a chunk. ``next_offset`` is where reading continues, also after batches without records."""

    def __init__(
        self, chunk: Chunk, *, skips_aborted: bool, checks_crcs: bool, leader_epoch: int = NO_EPOCH
    ) -> None:
        self.chunk = chunk
        self.next_offset = chunk.fetch_offset
        self.leader_epoch = leader_epoch
        """Of the last record before ``next_offset``."""
        self._batch_epoch = leader_epoch
        self._skips_aborted = skips_aborted
        self._checks_crcs = checks_crcs
        self._records = self._walk()
        self._corrupt: CorruptBatch | None = None

    def take(self, count_max: int) -> list[Record]:
        """The next records, at most ``count_max``; none at the end of the chunk.

        A corrupt batch is raised after the records before it were taken, and by every later call.
        """
        if self._corrupt is not None:
            raise self._corrupt
        taken: list[Record] = []
        try:
            for record in self._records:
                taken.append(record)
                self.next_offset, self.leader_epoch = record.offset + 1, self._batch_epoch
                if len(taken) >= count_max:
                    break
        except CorruptBatch as corrupt:
            self._corrupt = corrupt
            if not taken:
                raise
        return taken

    def _walk(self) -> Iterator[Record]:
        chunk = self.chunk
        try:
            for header in self._wanted(batches(chunk.data)):
                if self._checks_crcs and not crc_is_valid(chunk.data, header):
                    raise CorruptBatch(chunk.partition, f"the batch at {header.base_offset} has a wrong CRC")
                self._batch_epoch = header.partition_leader_epoch
                if not header.is_control:
                    for record in read_records(chunk.data, header):
                        if record.offset >= chunk.fetch_offset:
                            yield record
                self._skip(header)
        except CorruptRecords as corrupt:
            raise CorruptBatch(chunk.partition, str(corrupt)) from corrupt

    def _wanted(self, headers: Iterable[BatchHeader]) -> Iterator[BatchHeader]:
        """Batches that are not before the fetch offset and not of an aborted transaction."""
        pending = sorted(self.chunk.aborted, key=lambda aborted: aborted[1], reverse=True)
        aborted: set[int] = set()
        for header in headers:
            while self._skips_aborted and pending and pending[-1][1] <= header.last_offset:
                aborted.add(pending.pop()[0])
            if header.is_control and header.producer_id in aborted:
                marker = read_end_marker(self.chunk.data, header)
                if marker is not None and not marker.is_commit:
                    aborted.discard(header.producer_id)
            if header.last_offset < self.chunk.fetch_offset:
                continue
            if header.is_transactional and not header.is_control and header.producer_id in aborted:
                self._skip(header)
                continue
            yield header

    def _skip(self, header: BatchHeader) -> None:
        """Continue after this batch."""
        if header.end_offset >= self.next_offset:
            self.next_offset, self.leader_epoch = header.end_offset, header.partition_leader_epoch
