"""What stands in a log, read from its bytes: records, and how the transactions in it ended."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from ottla.records.batch import BatchHeader, batches
from ottla.records.control import read_end_marker
from ottla.records.record import read_records
from ottla.sim.truth.history import Found
from ottla.storage.log.log import Log


@dataclass(slots=True)
class Settled:
    """A record, and whether readers of committed records are given it."""

    offset: int
    key: bytes | None
    value: bytes
    is_committed: bool | None = True
    """None while its transaction is open."""


@dataclass(frozen=True, slots=True)
class Mark:
    """The end of a transaction on a partition."""

    producer_id: int
    epoch: int
    is_commit: bool


@dataclass(slots=True)
class Contents:
    """A log from its start to its end."""

    records: list[Settled] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)


def bytes_of(log: Log, start: int) -> bytes:
    """All batches from an offset on."""
    offset, parts = start, []
    while offset < log.end_offset:
        piece = log.read(offset, 1 << 20, log.end_offset, True)
        assert piece is not None, "a log can be read between its start and its end"
        data = bytes(piece.buffer())
        parts.append(data)
        offset = max(header.last_offset for header in batches(data)) + 1
    return b"".join(parts)


def records_of(log: Log) -> list[Found]:
    """All records, whatever became of their transactions."""
    return [Found(each.offset, each.key, each.value) for each in contents_of(log).records]


def contents_of(log: Log) -> Contents:
    """Records with the outcomes of their transactions, by the markers behind them alone."""
    data = memoryview(bytes_of(log, int(log.log_start_offset)))
    found = Contents()
    open_: dict[int, list[Settled]] = {}
    for header in batches(data):
        if header.is_control:
            marker = read_end_marker(data, header)
            if marker is not None:
                found.marks.append(Mark(header.producer_id, header.producer_epoch, marker.is_commit))
                for each in open_.pop(header.producer_id, []):
                    each.is_committed = marker.is_commit
            continue
        of_batch = list(_settled(data, header, int(log.log_start_offset)))
        found.records += of_batch
        if header.is_transactional:
            open_.setdefault(header.producer_id, []).extend(of_batch)
    return found


def _settled(data: memoryview, header: BatchHeader, start: int) -> Iterator[Settled]:
    outcome = None if header.is_transactional else True
    for record in read_records(data, header):
        if record.offset >= start:
            yield Settled(record.offset, record.key, record.value or b"", outcome)


def newest(records: list[Settled]) -> dict[bytes | None, tuple[int, bytes]]:
    """What compaction must keep. A key that was deleted is there by its tombstone, or not at all; what was
    aborted need not be there."""
    last = {each.key: (each.offset, each.value) for each in records if each.is_committed is not False}
    return {key: (offset, value) for key, (offset, value) in last.items() if value}
