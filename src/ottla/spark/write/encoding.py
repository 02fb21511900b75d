"""Arrow rows into sealed record batches, one partition at a time."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ottla.records.batch import (
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    TRANSACTIONAL_BIT,
    BatchHeader,
    seal,
    write_header,
)
from ottla.records.builder import assemble
from ottla.records.compression import Codec
from ottla.spark.errors import SparkRefused
from ottla.spark.kernels import encode as kernel

NO_EPOCH = -1


@dataclass(slots=True)
class EncodedBatch:
    """A batch of one partition; sealed anew whenever its producer or its sequence changes."""

    topic: str
    partition: int
    data: bytearray | memoryview
    header: BatchHeader
    attempts: int = 0

    def stamp(
        self, producer_id: int, producer_epoch: int, base_sequence: int, is_transactional: bool = False
    ) -> None:
        """Give it its place in a producer's sequence, or in its transaction's."""
        self.header = self.header._replace(
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            attributes=self.header.attributes | (TRANSACTIONAL_BIT if is_transactional else 0),
        )
        write_header(self.data, self.header)
        seal(self.data, 0, len(self.data))


class _Strings:
    """A column of byte strings as the kernels read it."""

    def __init__(self, column: pa.Array | None, rows: int) -> None:
        self.ends: Any
        if column is None:
            self.ends = np.zeros(rows + 1, np.int32)
            self.valid = np.zeros(max(rows, 1), np.bool_)
            self.data = np.zeros(1, np.uint8)
            return
        _, ends, data = column.buffers()
        is_large = pa.types.is_large_string(column.type) or pa.types.is_large_binary(column.type)
        every_end = np.frombuffer(ends, np.int64 if is_large else np.int32)
        self.ends = every_end[column.offset : column.offset + len(column) + 1]
        self.valid = _validity(column)
        self.data = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)

    def parts(self) -> tuple[Any, Any, Any]:
        return self.ends, self.valid, self.data


class ArrowEncoder:
    """Cuts the rows of Arrow batches into record batches for the partitions they belong to."""

    def __init__(
        self,
        *,
        topic: str | None,
        codec: Codec,
        batch_bytes: int,
        record_bytes_max: int,
        preserve_timestamp: bool,
        sticky: Callable[[str], int],
    ) -> None:
        """``sticky`` names the partition for rows without a key and without a partition of their own."""
        self._topic = topic
        self._codec = codec
        self._batch_bytes = batch_bytes
        self._record_bytes_max = record_bytes_max
        self._preserve_timestamp = preserve_timestamp
        self._sticky = sticky

    def topics(self, rows: pa.RecordBatch) -> list[str]:
        """The topics that these rows go to; a row without one is refused."""
        if self._topic is not None:
            return [self._topic]
        column = rows.column("topic")
        if column.null_count:
            raise SparkRefused(
                "a row has null in column 'topic'", "fill it, filter such rows out, or give option 'topic'"
            )
        return [str(name) for name in column.unique().to_pylist()]

    def encode(
        self, rows: pa.RecordBatch, partition_counts: Mapping[str, int], now_ms: int
    ) -> Iterator[EncodedBatch]:
        """Record batches, in the order of the rows within each partition."""
        if not rows.num_rows:
            return
        columns = _Columns(rows, self._preserve_timestamp, now_ms)
        names = self.topics(rows)
        for name in names:
            if self._topic is None and len(names) > 1:
                mask = np.asarray(pa.compute.equal(rows.column("topic"), name))
                indices = np.flatnonzero(mask).astype(np.int64)
            else:
                indices = np.arange(rows.num_rows, dtype=np.int64)
            yield from self._encode_topic(name, columns, indices, partition_counts[name])

    def _encode_topic(
        self, topic: str, columns: "_Columns", indices: Any, count: int
    ) -> Iterator[EncodedBatch]:
        chosen = columns.partitions(indices, topic, count)
        keys, sticky = columns.key, self._sticky(topic)
        assert 0 <= sticky < count, f"{topic} has {count} partitions, and {sticky} is none of them"
        kernel.choose_partitions(indices, chosen, keys.ends, keys.valid, keys.data, count, sticky)
        ends, ordered = np.zeros(count + 1, np.int64), np.empty(len(indices), np.int64)
        kernel.group_rows(indices, chosen, ends, ordered)
        begin = 0
        for partition, end in enumerate(ends[:count].tolist()):
            if end > begin:
                yield from self._encode_partition(topic, partition, columns, ordered[begin:end])
            begin = end

    def _encode_partition(
        self, topic: str, partition: int, columns: "_Columns", rows: Any
    ) -> Iterator[EncodedBatch]:
        first = 0
        limit = usual = max(1, min(self._batch_bytes, self._record_bytes_max))
        while first < len(rows):
            room = np.empty(HEADER_SIZE + limit, np.uint8)
            next_row, end, max_timestamp = columns.encode(rows, first, room, HEADER_SIZE, limit)
            if next_row == first:
                # One record larger than a batch is wont to be: it travels alone.
                if limit >= self._record_bytes_max:
                    raise SparkRefused(
                        f"a record for {topic}-{partition} is larger than kafka.max.request.size="
                        f"{self._record_bytes_max}",
                        "raise it and the topic's max.message.bytes, or make the value smaller",
                    )
                limit = min(limit * 4, self._record_bytes_max)
                continue
            header = BatchHeader(
                position=0,
                base_offset=0,
                length=int(end) - LOG_OVERHEAD,
                partition_leader_epoch=NO_EPOCH,
                magic=MAGIC,
                crc=0,
                attributes=0,
                last_offset_delta=int(next_row) - first - 1,
                base_timestamp=int(columns.timestamps[rows[first]]),
                max_timestamp=int(max_timestamp),
                producer_id=NO_PRODUCER_ID,
                producer_epoch=NO_PRODUCER_EPOCH,
                base_sequence=NO_SEQUENCE,
                record_count=int(next_row) - first,
            )
            yield self._finished(topic, partition, header, room[:end])
            first = int(next_row)
            limit = usual

    def _finished(self, topic: str, partition: int, header: BatchHeader, room: Any) -> EncodedBatch:
        if self._codec is Codec.NONE:
            return EncodedBatch(topic, partition, memoryview(room), header)
        data = assemble(header, room[HEADER_SIZE:].tobytes(), self._codec)
        length = len(data) - LOG_OVERHEAD
        return EncodedBatch(
            topic, partition, data, header._replace(length=length, attributes=int(self._codec))
        )


class _Columns:
    """The columns of some rows as the kernels read them."""

    def __init__(self, rows: pa.RecordBatch, preserve_timestamp: bool, now_ms: int) -> None:
        count = rows.num_rows
        self._count = count
        self.key = _Strings(_column(rows, "key"), count)
        self.value = _Strings(_column(rows, "value"), count)
        self._partition = _column(rows, "partition")
        self.timestamps = (
            _timestamps(rows, now_ms) if preserve_timestamp else np.full(count, now_ms, np.int64)
        )
        headers = _column(rows, "headers")
        if headers is None or headers.null_count == count:
            self._header_ends = np.zeros(count + 1, np.int64)
            self._header_keys = self._header_values = _Strings(None, 0)
        else:
            lists = headers.cast(pa.large_list(headers.type.value_type))
            # A null list must not span elements: Arrow allows it, so lengths are taken from valid rows only.
            lists = lists.fill_null([]) if lists.null_count else lists
            self._header_ends = np.asarray(lists.offsets).astype(np.int64)
            pairs = lists.values
            self._header_keys = _Strings(pairs.field(0), len(pairs))
            self._header_values = _Strings(pairs.field(1), len(pairs))
            if not self._header_keys.valid[: len(pairs)].all():
                raise SparkRefused("a header has null as its key", "give every header a key")

    def partitions(self, indices: Any, topic: str, count: int) -> Any:
        """The partitions that rows name themselves; ``NO_PARTITION`` where they do not."""
        if self._partition is None:
            return np.full(self._count, kernel.NO_PARTITION, np.int64)
        chosen = np.asarray(self._partition.cast(pa.int64()).fill_null(kernel.NO_PARTITION)).copy()
        named = chosen[indices][_validity(self._partition)[indices]]
        wrong = named[(named >= count) | (named < 0)]
        if len(wrong):
            raise SparkRefused(
                f"a row names partition {wrong[0]} of topic {topic}, which has {count}",
                "correct column 'partition', or add partitions to the topic",
            )
        return chosen

    def encode(self, rows: Any, first: int, target: Any, start: int, limit: int) -> tuple[Any, Any, Any]:
        headers = (self._header_ends, self._header_keys.parts(), self._header_values.parts())
        columns = (self.timestamps, self.key.parts(), self.value.parts(), *headers)
        return kernel.encode_records(rows, first, target, start, limit, columns)


def _column(rows: pa.RecordBatch, name: str) -> pa.Array | None:
    return rows.column(name) if name in rows.schema.names else None


def _timestamps(rows: pa.RecordBatch, now_ms: int) -> Any:
    column = _column(rows, "timestamp")
    if column is None:
        raise SparkRefused("option preserveTimestamp='true': there is no column 'timestamp'", "add it")
    micros = np.asarray(column.cast(pa.int64()).fill_null(now_ms * 1000))
    return micros // 1000


def _validity(column: pa.Array) -> Any:
    if not column.null_count:
        return np.ones(max(len(column), 1), np.bool_)
    return np.asarray(column.is_valid())
