"""Kafka's dump of a file of the log, line by line: segments, indexes, snapshots, checkpoints.

Lines are yielded as they are made, so that a segment of any size is read with little memory.
A finding is a problem that the tool reports at the end; ``Undumpable`` ends a file's dump.
"""

from __future__ import annotations

import mmap
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from struct import Struct

from ottla.records.batch import (
    HEADER_SIZE,
    LENGTH_MIN_ANY_MAGIC,
    LOG_OVERHEAD,
    MAGIC_AT,
    NO_SEQUENCE,
    BatchHeader,
    CorruptRecords,
    advance_sequence,
    crc_is_valid,
    read_header,
)
from ottla.records.checksum import crc32c
from ottla.records.compression import codec_of
from ottla.records.control import read_end_marker
from ottla.records.record import Record, read_records

Decoder = Callable[[Record], tuple[str | None, str | None]]
Pairs = list[tuple[int, int]]

BYTES_MAX = 2**31 - 1
MESSAGE_BYTES_MAX = 5 * 1024 * 1024

_PARTITION_OFFSET = ("topic", "partition", "offset")
CHECKPOINTS = {
    "leader-epoch-checkpoint": ("epoch", "startOffset"),
    "replication-offset-checkpoint": _PARTITION_OFFSET,
    "recovery-point-offset-checkpoint": _PARTITION_OFFSET,
    "log-start-offset-checkpoint": _PARTITION_OFFSET,
    "cleaner-offset-checkpoint": _PARTITION_OFFSET,
}
PARTITION_METADATA = "partition.metadata"

_LENGTH = Struct(">i")
_OFFSET_ENTRY = Struct(">ii")
_TIME_ENTRY = Struct(">qi")
_ABORTED = Struct(">hqqqq")
_SNAPSHOT_HEAD = Struct(">hIi")
_PRODUCER = Struct(">qhiqiqiq")
_CONTROL_KEY = Struct(">hh")
_UNTIL_MAGIC = MAGIC_AT + 1
_SNAPSHOT_CRC_ENDS_AT = 6
_CONTROL_TYPES = {
    2: "LEADER_CHANGE",
    3: "SNAPSHOT_HEADER",
    4: "SNAPSHOT_FOOTER",
    5: "KRAFT_VERSION",
    6: "KRAFT_VOTERS",
}


class Undumpable(Exception):
    """A file that cannot be read (further); the message is one sentence."""


class _Entries:
    """A file of entries of one size."""

    def __init__(self, path: Path, entry: Struct) -> None:
        content = _mapped(path)
        whole = len(content) - len(content) % entry.size
        self._content = content[:whole]
        self._entry = entry
        self.is_whole = whole == len(content)

    def __len__(self) -> int:
        return len(self._content) // self._entry.size

    def __getitem__(self, number: int) -> tuple[int, ...]:
        return self._entry.unpack_from(self._content, number % len(self) * self._entry.size)

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        return self._entry.iter_unpack(self._content)

    def written(self, offset_at: int) -> Iterator[tuple[int, ...]]:
        """The entries up to the zeros behind them in a file that was never trimmed."""
        for number, entry in enumerate(self):
            if number and entry[offset_at] == 0:
                return
            yield entry


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpOptions:
    """Kafka's flags."""

    deep: bool = False
    print_data: bool = False
    skip_record_metadata: bool = False
    index_sanity_only: bool = False
    verify_index_only: bool = False
    message_bytes_max: int = MESSAGE_BYTES_MAX
    bytes_max: int = BYTES_MAX
    decode: Decoder


@dataclass(slots=True)
class Findings:
    """What does not fit together, by file, in the order of Kafka's report."""

    index_mismatches: dict[Path, Pairs] = field(default_factory=dict)
    timestamp_mismatches: dict[Path, Pairs] = field(default_factory=dict)
    timestamps_out_of_order: dict[Path, Pairs] = field(default_factory=dict)
    offsets_not_found: dict[Path, Pairs] = field(default_factory=dict)
    gaps: dict[Path, Pairs] = field(default_factory=dict)
    ignored: list[Path] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        """The report; of two kinds Kafka tells the last finding first."""
        yield from (f"Ignoring unknown file {path}" for path in self.ignored)
        for path, pairs in self.index_mismatches.items():
            yield f"Mismatches in :{path}"
            yield from (f"  Index offset: {index}, log offset: {log}" for index, log in reversed(pairs))
        for path, pairs in self.timestamp_mismatches.items():
            yield f"Found timestamp mismatch in :{path}"
            yield from (f"  Index timestamp: {index}, log timestamp: {log}" for index, log in pairs)
        for path, pairs in self.timestamps_out_of_order.items():
            yield f"Found out of order timestamp in :{path}"
            yield from (
                f"  Index timestamp: {now}, Previously indexed timestamp: {then}" for now, then in pairs
            )
        for pairs in self.offsets_not_found.values():
            yield "The following indexed offsets are not found in the log."
            yield from (f"Indexed offset: {index}, found log offset: {log}" for index, log in pairs)
        for path, pairs in self.gaps.items():
            yield f"Non-consecutive offsets in {path}"
            yield from (f"  {first} is followed by {second}" for first, second in reversed(pairs))


def dump_file(path: Path, options: DumpOptions, findings: Findings) -> Iterator[str]:
    """The lines of a file, by the kind that its name tells; raises ``Undumpable``."""
    if not path.exists():
        raise Undumpable(f"{path} cannot be read: No such file or directory.")
    match path.suffix:
        case ".log":
            return dump_segment(path, options, findings)
        case ".index":
            return dump_offset_index(path, options, findings)
        case ".timeindex":
            return dump_time_index(path, options, findings)
        case ".txnindex":
            return dump_transaction_index(path)
        case ".snapshot":
            return dump_producer_snapshot(path)
        case _ if path.name in CHECKPOINTS or path.name == PARTITION_METADATA:
            return dump_checkpoint(path)
        case _:
            findings.ignored.append(path)
            return iter(())


def dump_segment(path: Path, options: DumpOptions, findings: Findings) -> Iterator[str]:
    """A ``.log`` file: its batches and, if asked for, their records."""
    yield f"Log starting offset: {_base_offset(path)}"
    last_offset = -1
    view = _mapped(path)[: options.bytes_max]
    position = 0
    for header in _whole_batches(path, view):
        yield _batch_line(path, view, header)
        if options.deep:
            for record in _records(path, view, header):
                if last_offset not in (-1, record.offset - 1):
                    findings.gaps.setdefault(path.absolute(), []).append((last_offset, record.offset))
                last_offset = record.offset
                yield _record_line(view, header, record, options)
        position = header.end_position
    invalid_bytes = len(view) - position
    if invalid_bytes and options.bytes_max == BYTES_MAX:
        yield f"Found {invalid_bytes} invalid bytes at the end of {path.name}"


def dump_offset_index(path: Path, options: DumpOptions, findings: Findings) -> Iterator[str]:
    """An ``.index`` file, each entry checked against the batch it points to."""
    base_offset = _base_offset(path)
    entries = _Entries(path, _OFFSET_ENTRY)
    log = _mapped(path.with_suffix(".log"))
    if not entries:
        yield f"{path} is empty."
        return
    if options.index_sanity_only:
        _check_sanity(path, entries.is_whole and entries[-1][0] >= 0)
        yield f"{path} passed sanity check."
        return
    for relative, position in entries.written(offset_at=0):
        offset = base_offset + relative
        batch = _batch_at(path, log, position, options.message_bytes_max)
        if batch.last_offset != offset:
            findings.index_mismatches.setdefault(path.absolute(), []).append((offset, batch.last_offset))
        if not options.verify_index_only:
            yield f"offset: {offset} position: {position}"


def dump_time_index(path: Path, options: DumpOptions, findings: Findings) -> Iterator[str]:
    """A ``.timeindex`` file, each entry checked against the records of its batch."""
    base_offset = _base_offset(path)
    entries = _Entries(path, _TIME_ENTRY)
    index = path.with_suffix(".index")
    positions = list(_Entries(index, _OFFSET_ENTRY).written(offset_at=0)) if index.exists() else []
    log = _mapped(path.with_suffix(".log"))
    if options.index_sanity_only:
        is_ordered = not entries or (entries[-1][0] >= entries[0][0] and entries[-1][1] >= 0)
        _check_sanity(path, entries.is_whole and is_ordered)
        yield f"{path} passed sanity check."
        return
    before = -1
    for timestamp, relative in entries.written(offset_at=1):
        indexed = bisect_right(positions, relative, key=itemgetter(0))
        start = positions[indexed - 1][1] if indexed else 0
        _check_time(path, log, start, timestamp, base_offset + relative, before, findings)
        if not options.verify_index_only:
            yield f"timestamp: {timestamp} offset: {base_offset + relative}"
        before = timestamp


def dump_transaction_index(path: Path) -> Iterator[str]:
    """A ``.txnindex`` file: the aborted transactions of a segment."""
    for version, producer_id, first_offset, last_offset, stable_offset in _Entries(path, _ABORTED):
        yield (
            f"version: {version} producerId: {producer_id} firstOffset: {first_offset} "
            f"lastOffset: {last_offset} lastStableOffset: {stable_offset}"
        )


def dump_producer_snapshot(path: Path) -> Iterator[str]:
    """A ``.snapshot`` file: what the log knew of its producers."""
    content = _content(path)
    if len(content) < _SNAPSHOT_HEAD.size:
        raise Undumpable(f"{path} is shorter than the head of a producer snapshot.")
    version, crc, count = _SNAPSHOT_HEAD.unpack_from(content)
    if version != 1:
        raise Undumpable(f"{path} has the unknown snapshot version {version}.")
    actual = crc32c(content[_SNAPSHOT_CRC_ENDS_AT:])
    if crc != actual:
        raise Undumpable(f"{path} is corrupt: its checksum is {actual}, not {crc} as it says.")
    if len(content) < _SNAPSHOT_HEAD.size + count * _PRODUCER.size:
        raise Undumpable(f"{path} is cut short: it should hold {count} producers.")
    for number in range(count):
        yield _producer_line(_PRODUCER.unpack_from(content, _SNAPSHOT_HEAD.size + number * _PRODUCER.size))


def dump_checkpoint(path: Path) -> Iterator[str]:
    """A checkpoint of a log directory or partition, one entry a line with its fields named."""
    try:
        lines = _content(path).decode().splitlines()
        if path.name == PARTITION_METADATA:
            yield from lines
            return
        names = CHECKPOINTS[path.name]
        if lines and (int(lines[0]), int(lines[1])) != (0, len(lines) - 2):
            raise Undumpable(
                f"{path} says version {lines[0]} with {lines[1]} entries and has {len(lines) - 2}."
            )
        for line in lines[2:]:
            yield " ".join(f"{name}: {value}" for name, value in zip(names, line.split(), strict=True))
    except (ValueError, IndexError) as error:
        raise Undumpable(f"{path} is not a checkpoint: {error}.") from error


def _producer_line(entry: tuple[int, ...]) -> str:
    producer_id, epoch, last_sequence, last_offset, delta, timestamp, coordinator_epoch, first_offset = entry
    line = (
        f"producerId: {producer_id} producerEpoch: {epoch} coordinatorEpoch: {coordinator_epoch} "
        f"currentTxnFirstOffset: {_optional(first_offset)} lastTimestamp: {timestamp} "
    )
    if last_offset < 0:
        return line
    return line + (
        f"firstSequence: {advance_sequence(last_sequence, -delta)} lastSequence: {last_sequence} "
        f"lastOffset: {last_offset} offsetDelta: {delta} timestamp: {timestamp}"
    )


def _whole_batches(path: Path, view: memoryview) -> Iterator[BatchHeader]:
    position = 0
    while len(view) - position > _UNTIL_MAGIC:
        (length,) = _LENGTH.unpack_from(view, position + 8)
        if length < LENGTH_MIN_ANY_MAGIC:
            raise Undumpable(
                f"{path} is corrupt at position {position}: a batch cannot be {length} bytes long."
            )
        if len(view) - position < LOG_OVERHEAD + length:
            return
        yield _header(path, view, position)
        position += LOG_OVERHEAD + length


def _header(path: Path, view: memoryview, position: int) -> BatchHeader:
    try:
        return read_header(view, position)
    except CorruptRecords as error:
        raise Undumpable(f"{path} cannot be read at position {position}: {error}.") from error


def _records(path: Path, view: memoryview, header: BatchHeader) -> Iterator[Record]:
    try:
        yield from read_records(view, header)
    except CorruptRecords as error:
        raise Undumpable(f"The batch at position {header.position} of {path} is corrupt: {error}.") from error


def _batch_line(path: Path, view: memoryview, header: BatchHeader) -> str:
    try:
        codec = codec_of(header.attributes).name.lower()
    except CorruptRecords as error:
        raise Undumpable(f"The batch at position {header.position} of {path} is corrupt: {error}.") from error
    horizon = header.delete_horizon_ms
    return (
        f"baseOffset: {header.base_offset} lastOffset: {header.last_offset} count: {header.record_count} "
        f"baseSequence: {header.base_sequence} lastSequence: {header.last_sequence} "
        f"producerId: {header.producer_id} producerEpoch: {header.producer_epoch} "
        f"partitionLeaderEpoch: {header.partition_leader_epoch} "
        f"isTransactional: {_java(header.is_transactional)} isControl: {_java(header.is_control)} "
        f"deleteHorizonMs: {_optional(-1 if horizon is None else horizon)} position: {header.position} "
        f"{_timestamp_type(header)}: {header.max_timestamp} size: {header.size} magic: {header.magic} "
        f"compresscodec: {codec} crc: {header.crc} isvalid: {_java(crc_is_valid(view, header))}"
    )


def _record_line(view: memoryview, header: BatchHeader, record: Record, options: DumpOptions) -> str:
    parts = []
    if not options.skip_record_metadata:
        sequence = NO_SEQUENCE
        if header.base_sequence >= 0:
            sequence = advance_sequence(header.base_sequence, record.offset - header.base_offset)
        names = ",".join(name for name, _ in record.headers)
        parts.append(
            f"offset: {record.offset} {_timestamp_type(header)}: {record.timestamp} "
            f"keySize: {_size(record.key)} valueSize: {_size(record.value)} "
            f"sequence: {sequence} headerKeys: [{names}]"
        )
        if header.is_control:
            parts.append(_control_part(view, header, record))
    if options.print_data and not header.is_control:
        key, payload = options.decode(record)
        if key is not None:
            parts.append(f"key: {key}")
        if payload is not None:
            if not parts:
                return f" payload: {payload}"  # Kafka's tool has no bar before a payload that comes first.
            parts.append(f"payload: {payload}")
    return "| " + " ".join(parts) if parts else ""


def _control_part(view: memoryview, header: BatchHeader, record: Record) -> str:
    try:
        marker = read_end_marker(view, header)
    except CorruptRecords as error:
        raise Undumpable(f"The control batch at position {header.position} is corrupt: {error}.") from error
    if marker is not None:
        kind = "COMMIT" if marker.is_commit else "ABORT"
        return f"endTxnMarker: {kind} coordinatorEpoch: {marker.coordinator_epoch}"
    _, type_id = _CONTROL_KEY.unpack_from(record.key or b"\0\0\0\0")
    return f"controlType: {_CONTROL_TYPES.get(type_id, 'UNKNOWN')}({type_id})"


def _batch_at(path: Path, log: memoryview, position: int, bytes_max: int) -> BatchHeader:
    if not 0 <= position <= len(log) - HEADER_SIZE:
        raise Undumpable(
            f"{path} points to position {position}, where its log of {len(log)} bytes has no batch."
        )
    header = _header(path.with_suffix(".log"), log, position)
    if header.size > bytes_max:
        raise Undumpable(f"The batch at position {position} is larger than --max-message-size {bytes_max}.")
    return header


def _check_time(
    path: Path, log: memoryview, start: int, timestamp: int, offset: int, before: int, findings: Findings
) -> None:
    log_path = path.with_suffix(".log")
    view = log[start:]
    for header in _whole_batches(log_path, view):
        if header.last_offset >= offset:
            break
    else:
        findings.offsets_not_found.setdefault(path.absolute(), []).append((offset, -1))
        return
    if header.last_offset != offset:
        findings.offsets_not_found.setdefault(path.absolute(), []).append((offset, header.last_offset))
        return
    largest = max((record.timestamp for record in _records(log_path, view, header)), default=-1)
    if largest != timestamp:
        findings.timestamp_mismatches.setdefault(path.absolute(), []).append((timestamp, largest))
    if before >= timestamp:
        findings.timestamps_out_of_order.setdefault(path.absolute(), []).append((timestamp, before))


def _check_sanity(path: Path, is_sane: bool) -> None:
    if not is_sane:
        raise Undumpable(f"{path} did not pass the sanity check: a broker would rebuild it.")


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise Undumpable(f"{path} cannot be read: {error.strerror or error}.") from error


def _mapped(path: Path) -> memoryview:
    # Never closed by hand: the last view into it, which may sit in a traceback, takes it along.
    try:
        with path.open("rb") as file:
            if path.stat().st_size == 0:
                return memoryview(b"")
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except OSError as error:
        raise Undumpable(f"{path} cannot be read: {error.strerror or error}.") from error


def _base_offset(path: Path) -> int:
    try:
        return int(path.name.split(".", 1)[0])
    except ValueError as error:
        raise Undumpable(f"{path} is not named after an offset.") from error


def _timestamp_type(header: BatchHeader) -> str:
    return "LogAppendTime" if header.is_log_append_time else "CreateTime"


def _optional(value: int) -> str:
    return "OptionalLong.empty" if value < 0 else f"OptionalLong[{value}]"


def _java(value: bool) -> str:
    return "true" if value else "false"


def _size(part: bytes | None) -> int:
    return -1 if part is None else len(part)
