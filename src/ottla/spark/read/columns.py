"""Fetched batches of one partition into Arrow record batches."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ottla.client.errors import CorruptBatch
from ottla.client.fetching.decoding import Chunk
from ottla.model.ids import TopicPartition
from ottla.records.batch import (
    CRC_STARTS_AT,
    HEADER_SIZE,
    BatchHeader,
    Buffer,
    CorruptRecords,
    batches,
    crc_is_valid,
)
from ottla.records.checksum import crc32c
from ottla.records.compression import Codec, codec_of, decompress
from ottla.records.control import read_end_marker
from ottla.spark.errors import SparkRefused
from ottla.spark.kernels import decode as kernel

ROWS_PER_BATCH = 40_000
GROUP_BYTES = 16 * 1024 * 1024
PLAIN_BYTES_MAX = 1 << 30
"""Records that grow beyond this when decompressed are taken for corrupt."""

_PAIR = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
_TYPES = {
    "key": pa.binary(),
    "value": pa.binary(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestampType": pa.int32(),
    "headers": pa.list_(pa.field("element", _PAIR)),
}
_NO_ENDS = np.zeros(1, dtype=np.int32)


def arrow_schema(names: Sequence[str]) -> pa.Schema:
    """The columns with exactly the types that Spark expects from a source of these columns."""
    return pa.schema([pa.field(name, _TYPES[name]) for name in names])


def wanted_batches(chunk: Chunk, until_offset: int, *, is_committed_only: bool) -> Iterator[BatchHeader]:
    """The chunk's data batches that hold offsets of the range, without those of aborted transactions."""
    pending = sorted(chunk.aborted, key=lambda aborted: aborted[1], reverse=True)
    aborted: set[int] = set()
    for header in batches(chunk.data):
        while is_committed_only and pending and pending[-1][1] <= header.last_offset:
            aborted.add(pending.pop()[0])
        if header.base_offset >= until_offset:
            return
        if header.is_control:
            if header.producer_id in aborted:
                marker = read_end_marker(chunk.data, header)
                if marker is not None and not marker.is_commit:
                    aborted.discard(header.producer_id)
            continue
        if header.last_offset < chunk.fetch_offset or not header.record_count:
            continue
        if header.is_transactional and header.producer_id in aborted:
            continue
        yield header


@dataclass(slots=True)
class _Group:
    """Batches that are decoded together: their bytes in one buffer, and the table that finds them there."""

    source: Buffer
    rows: list[tuple[int, ...]]


class ColumnDecoder:
    """Decodes the chunks of one partition into the columns of a schema."""

    def __init__(
        self,
        partition: TopicPartition,
        schema: pa.Schema,
        *,
        is_committed_only: bool = False,
        checks_crcs: bool = True,
    ) -> None:
        self._partition = partition
        self._schema = schema
        self._is_committed_only = is_committed_only
        self._checks_crcs = checks_crcs
        self._wants = sum(
            bit
            for name, bit in (
                ("key", kernel.WANTS_KEY),
                ("value", kernel.WANTS_VALUE),
                ("headers", kernel.WANTS_HEADERS),
                ("timestamp", kernel.WANTS_TIMESTAMP),
            )
            if name in schema.names
        )

    def decode(self, chunk: Chunk, until_offset: int) -> Iterator[pa.RecordBatch]:
        """The chunk's records from its fetch offset up to ``until_offset``."""
        if (plain := self._plain_batches(chunk, until_offset)) is not None:
            yield from self._rows(chunk.data, plain, chunk.fetch_offset, until_offset)
            return
        try:
            wanted = wanted_batches(chunk, until_offset, is_committed_only=self._is_committed_only)
            for group in self._groups(chunk, wanted):
                table = np.array(group.rows, dtype=np.int64)
                yield from self._rows(group.source, table, chunk.fetch_offset, until_offset)
        except CorruptRecords as corrupt:
            raise CorruptBatch(self._partition, str(corrupt)) from corrupt

    def _plain_batches(self, chunk: Chunk, until_offset: int) -> Any | None:
        """The table of the chunk's batches, found in one pass, if none of them needs more than decoding."""
        if self._is_committed_only and chunk.aborted:
            return None
        source = np.frombuffer(chunk.data, dtype=np.uint8)
        table = np.empty((len(source) // HEADER_SIZE + 1, kernel.TABLE_WIDTH), np.int64)
        count, _ = kernel.find_plain_batches(source, chunk.fetch_offset, until_offset, table)
        if count == kernel.NOT_PLAIN:
            return None
        table = table[:count]
        if self._checks_crcs:
            data = memoryview(chunk.data)
            before = HEADER_SIZE - CRC_STARTS_AT
            found = table[:, (kernel.START, kernel.END, kernel.CRC, kernel.BASE_OFFSET)].tolist()
            for start, end, crc, base_offset in found:
                if crc32c(data[start - before : end]) != crc:
                    raise CorruptBatch(self._partition, f"the batch at {base_offset} has a wrong CRC")
        return table

    def _rows(
        self, source: Buffer, table: Any, from_offset: int, until_offset: int
    ) -> Iterator[pa.RecordBatch]:
        if not len(table):
            return
        try:
            decoded = self._decode_table(source, table, from_offset, until_offset)
        except CorruptRecords as corrupt:
            raise CorruptBatch(self._partition, str(corrupt)) from corrupt
        if decoded.num_rows <= ROWS_PER_BATCH:
            yield decoded
            return
        for start in range(0, decoded.num_rows, ROWS_PER_BATCH):
            yield decoded.slice(start, ROWS_PER_BATCH)

    def _groups(self, chunk: Chunk, headers: Iterator[BatchHeader]) -> Iterator[_Group]:
        """Uncompressed batches stay where they are; compressed ones are laid out one behind the other."""
        data = memoryview(chunk.data)
        plain = _Group(chunk.data, [])
        inflated = _Group(bytearray(), [])
        for header in headers:
            if self._checks_crcs and not crc_is_valid(data, header):
                raise CorruptBatch(self._partition, f"the batch at {header.base_offset} has a wrong CRC")
            codec = codec_of(header.attributes)
            area = data[header.position + HEADER_SIZE : header.end_position]
            if codec is Codec.NONE:
                if inflated.rows:
                    yield inflated
                    inflated = _Group(bytearray(), [])
                _add(plain, header, header.position + HEADER_SIZE, len(area))
            else:
                if plain.rows:
                    yield plain
                    plain = _Group(chunk.data, [])
                records = decompress(codec, area, PLAIN_BYTES_MAX)
                assert isinstance(inflated.source, bytearray), "inflated batches have a buffer of their own"
                _add(inflated, header, len(inflated.source), len(records))
                inflated.source += records
                if len(inflated.source) >= GROUP_BYTES:
                    yield inflated
                    inflated = _Group(bytearray(), [])
        if plain.rows:
            yield plain
        if inflated.rows:
            yield inflated

    def _decode_table(
        self, source: Buffer, table: Any, from_offset: int, until_offset: int
    ) -> pa.RecordBatch:
        columns = _Columns(table, has_headers=bool(self._wants & kernel.WANTS_HEADERS))
        octets, counters = np.frombuffer(source, dtype=np.uint8), columns.counters
        is_sound = kernel.decode_batches(
            octets, table, from_offset, until_offset, self._wants, columns.parts(), counters
        )
        if counters[kernel.BAD_TIMESTAMP]:
            raise SparkRefused(
                f"{self._partition} has at offset {counters[kernel.BAD_OFFSET]} the timestamp "
                f"{counters[kernel.BAD_TIMESTAMP]}, beyond all that Spark can hold",
                "let its producer give milliseconds, or leave the column out: .schema('value BINARY')",
            )
        if not is_sound:
            base_offset = table[counters[kernel.FAILED_AT], kernel.BASE_OFFSET]
            raise CorruptRecords(f"the records of the batch at {base_offset} do not parse")
        arrays = [columns.array(field, self._partition) for field in self._schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


def _add(group: _Group, header: BatchHeader, start: int, size: int) -> None:
    group.rows.append(
        (
            start,
            start + size,
            header.record_count,
            header.base_offset,
            header.base_timestamp,
            header.max_timestamp,
            int(header.is_log_append_time),
            header.crc,
        )
    )


class _Bytes:
    """Room for a column of byte strings, as Arrow lays them out."""

    def __init__(self, count: int, room: int) -> None:
        self.ends = np.zeros(count + 1, np.int32) if count else _NO_ENDS
        self.valid = np.empty(max(count, 1), np.uint8)
        self.data = np.empty(max(room, 1), np.uint8)

    def parts(self) -> tuple[Any, Any, Any]:
        return self.ends, self.valid, self.data

    def array(self, rows: int, kind: pa.DataType) -> pa.Array:
        buffers = [_bitmap(self.valid[:rows]), pa.py_buffer(self.ends), pa.py_buffer(self.data)]
        return pa.Array.from_buffers(kind, rows, buffers)


class _Headers:
    """Room for the headers column: a list of pairs."""

    def __init__(self, count: int, room: int) -> None:
        self.ends = np.zeros(count + 1, np.int32)
        # A header takes two bytes at least: the lengths of its key and of its value.
        self.keys, self.values = _Bytes(room // 2, room), _Bytes(room // 2, room)

    def array(self, rows: int, header_count: int, kind: Any) -> pa.Array:
        pair = kind.value_type
        keys = _readable(
            pa.Array.from_buffers(
                pair.field("key").type,
                header_count,
                [None, pa.py_buffer(self.keys.ends), pa.py_buffer(self.keys.data)],
            )
        )
        values = self.values.array(header_count, pair.field("value").type)
        pairs = pa.Array.from_buffers(pair, header_count, [None], children=[keys, values])
        # Spark's own connector has null, not an empty array, for a record without headers.
        is_there = (np.diff(self.ends[: rows + 1]) > 0).astype(np.uint8)
        buffers = [_bitmap(is_there), pa.py_buffer(self.ends)]
        return pa.Array.from_buffers(kind, rows, buffers, children=[pairs])


class _Columns:
    """Room for every column of the records that a table of batches describes."""

    def __init__(self, table: Any, *, has_headers: bool) -> None:
        count = int(table[:, kernel.COUNT].sum())
        room = int((table[:, kernel.END] - table[:, kernel.START]).sum())
        if count > room:
            raise CorruptRecords(f"{count} records do not fit into {room} bytes")
        self.offsets, self.timestamps = np.empty(count, np.int64), np.empty(count, np.int64)
        self.timestamp_types = np.empty(count, np.int32)
        self.keys, self.values = _Bytes(count, room), _Bytes(count, room)
        self.headers = _Headers(count, room) if has_headers else _Headers(0, 0)
        self.counters = np.zeros(kernel.COUNTERS, np.int64)

    def parts(self) -> tuple[Any, ...]:
        """The columns in the order of the kernel."""
        strings = (self.keys.parts(), self.values.parts())
        headers = (self.headers.ends, self.headers.keys.parts(), self.headers.values.parts())
        return self.offsets, self.timestamps, self.timestamp_types, *strings, *headers

    def array(self, field: pa.Field, partition: TopicPartition) -> pa.Array:
        """One column, as far as it was filled."""
        rows = int(self.counters[kernel.ROWS])
        match field.name:
            case "key":
                return self.keys.array(rows, field.type)
            case "value":
                return self.values.array(rows, field.type)
            case "topic":
                return _repeated(partition.topic, rows)
            case "partition":
                return pa.array(np.full(rows, partition.partition, dtype=np.int32))
            case "offset":
                return pa.array(self.offsets[:rows])
            case "timestamp":
                return pa.Array.from_buffers(field.type, rows, [None, pa.py_buffer(self.timestamps)])
            case "timestampType":
                return pa.array(self.timestamp_types[:rows])
            case "headers":
                return self.headers.array(rows, int(self.counters[kernel.HEADERS]), field.type)
        raise AssertionError(f"no source of these columns has a column {field.name}")


def _readable(names: pa.Array) -> pa.Array:
    """Names as a Java client reads them: what is no UTF-8 is replaced, since nobody behind us expects it."""
    try:
        names.validate(full=True)
    except pa.ArrowInvalid:
        raw = names.view(pa.binary())
        return pa.array([name.as_py().decode(errors="replace") for name in raw], names.type)
    return names


def _bitmap(valid: Any) -> pa.Buffer | None:
    """Arrow's validity bits; none where nothing is null."""
    if valid.all():
        return None
    return pa.py_buffer(np.packbits(valid, bitorder="little"))


def _repeated(text: str, rows: int) -> pa.Array:
    """The same string in every row."""
    encoded = np.frombuffer(text.encode(), dtype=np.uint8)
    ends = np.arange(rows + 1, dtype=np.int32) * np.int32(len(encoded))
    return pa.Array.from_buffers(
        pa.string(), rows, [None, pa.py_buffer(ends), pa.py_buffer(np.tile(encoded, max(rows, 1)))]
    )
