"""Fetched batches become exactly the rows that they hold."""

from __future__ import annotations

import pytest

pytest.importorskip("numba")
pytest.importorskip("pyspark")

import pyarrow as pa

from ottla.client.errors import CorruptBatch
from ottla.client.fetching.decoding import Chunk
from ottla.model.ids import TopicPartition
from ottla.records.batch import seal
from ottla.records.builder import build_batch
from ottla.records.compression import Codec
from ottla.records.control import build_end_marker
from ottla.records.record import Record
from ottla.spark.errors import SparkRefused
from ottla.spark.options.schema import READ_COLUMNS
from ottla.spark.read.columns import ColumnDecoder, arrow_schema

ORDERS_0 = TopicPartition("orders", 0)
ALL = arrow_schema(list(READ_COLUMNS))


def some_records(count: int) -> list[Record]:
    """Null and empty keys and values, none to two headers."""
    return [
        Record(
            None if n % 3 == 0 else b"k" * (n % 5),
            None if n % 5 == 0 else b"v" * (n * 7 % 300),
            tuple((f"h{n}", None if n % 2 else b"x") for _ in range(n % 3)),
            1_000 + n,
        )
        for n in range(count)
    ]


def a_chunk(data: bytes, fetch_offset: int = 0, aborted: tuple[tuple[int, int], ...] = ()) -> Chunk:
    return Chunk(ORDERS_0, fetch_offset, data, 10_000, 10_000, 0, aborted)


def decoded(chunk: Chunk, until: int = 10_000, schema: pa.Schema = ALL, committed: bool = False) -> pa.Table:
    decoder = ColumnDecoder(ORDERS_0, schema, is_committed_only=committed)
    table = pa.Table.from_batches(list(decoder.decode(chunk, until)), schema=schema)
    table.validate(full=True)
    return table


@pytest.mark.parametrize("codec", list(Codec))
def test_every_codec_gives_the_records_back(codec: Codec) -> None:
    records = some_records(90)
    data = bytes(build_batch(records, base_offset=100, codec=codec))

    rows = decoded(a_chunk(data)).to_pylist()

    assert [row["offset"] for row in rows] == list(range(100, 190))
    assert [(row["key"], row["value"]) for row in rows] == [(r.key, r.value) for r in records]
    headers = [[{"key": key, "value": value} for key, value in r.headers] or None for r in records]
    assert [row["headers"] for row in rows] == headers
    assert [row["timestamp"].timestamp() for row in rows] == [r.timestamp / 1000 for r in records]
    assert {(row["topic"], row["partition"], row["timestampType"]) for row in rows} == {("orders", 0, 0)}


def test_a_headers_name_that_is_no_utf8_is_read_as_java_reads_it() -> None:
    names = ["plain", "ünlaut", "wrong-xx-", "last"]
    batch = bytearray(build_batch([Record(None, b"v", tuple((name, b"x") for name in names), 1_000)]))
    batch[:] = batch.replace(b"wrong-xx-", b"wrong-\xff\xe4-")
    seal(batch, 0, len(batch))

    [row] = decoded(a_chunk(bytes(batch))).to_pylist()

    assert [each["key"] for each in row["headers"]] == ["plain", "ünlaut", "wrong-\ufffd\ufffd-", "last"]
    assert {each["value"] for each in row["headers"]} == {b"x"}


def test_batches_of_several_codecs_stay_in_order() -> None:
    codecs = [Codec.NONE, Codec.LZ4, Codec.ZSTD, Codec.NONE, Codec.NONE, Codec.GZIP]
    data = b"".join(
        bytes(build_batch(some_records(10), base_offset=10 * n, codec=codec))
        for n, codec in enumerate(codecs)
    )

    assert decoded(a_chunk(data)).column("offset").to_pylist() == list(range(60))


def test_a_range_begins_and_ends_inside_batches() -> None:
    data = b"".join(bytes(build_batch(some_records(10), base_offset=10 * n)) for n in range(3))

    rows = decoded(a_chunk(data, fetch_offset=7), until=23)

    assert rows.column("offset").to_pylist() == list(range(7, 23))


def test_a_batch_cut_short_at_the_end_is_left_for_the_next_fetch() -> None:
    data = bytes(build_batch(some_records(10))) + bytes(build_batch(some_records(10), base_offset=10))[:-1]

    assert decoded(a_chunk(data)).num_rows == 10


def test_a_schema_of_some_columns_is_a_projection() -> None:
    schema = arrow_schema(["value", "offset"])
    data = bytes(build_batch(some_records(10)))

    table = decoded(a_chunk(data), schema=schema)

    assert table.schema == schema
    assert table.column("value").to_pylist() == [r.value for r in some_records(10)]


def test_log_append_time_is_the_batches() -> None:
    data = bytes(build_batch(some_records(3), log_append_time_ms=77_000))

    rows = decoded(a_chunk(data)).to_pylist()

    assert [(row["timestamp"].timestamp(), row["timestampType"]) for row in rows] == [(77.0, 1)] * 3


def a_transaction(producer_id: int, base_offset: int, is_commit: bool) -> bytes:
    batch = build_batch(
        some_records(2),
        base_offset=base_offset,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=True,
    )
    marker = build_end_marker(
        producer_id=producer_id,
        producer_epoch=0,
        is_commit=is_commit,
        coordinator_epoch=0,
        timestamp_ms=1,
        base_offset=base_offset + 2,
    )
    return bytes(batch) + bytes(marker)


def test_aborted_records_and_markers_are_left_out_when_only_committed_ones_are_read() -> None:
    data = a_transaction(5, 0, is_commit=False) + a_transaction(5, 3, is_commit=True)
    chunk = a_chunk(data, aborted=((5, 0),))

    assert decoded(chunk, committed=True).column("offset").to_pylist() == [3, 4]
    assert decoded(chunk, committed=False).column("offset").to_pylist() == [0, 1, 3, 4]


def test_a_wrong_checksum_is_refused_with_its_offset() -> None:
    data = bytearray(build_batch(some_records(10), base_offset=40))
    data[-1] ^= 1

    with pytest.raises(CorruptBatch, match="batch at 40 has a wrong CRC"):
        decoded(a_chunk(bytes(data)))


@pytest.mark.parametrize("at", range(61, 90))
def test_garbage_inside_records_never_reads_beyond_them(at: int) -> None:
    data = bytearray(build_batch(some_records(10)))
    data[at] ^= 0xFF
    decoder = ColumnDecoder(ORDERS_0, ALL, checks_crcs=False)

    try:
        table = pa.Table.from_batches(list(decoder.decode(a_chunk(bytes(data)), 10_000)), schema=ALL)
    except CorruptBatch:
        return
    table.validate()
    assert table.num_rows <= 10


@pytest.mark.parametrize(
    "timestamp", [1_700_000_000_000_000_000, 9_223_372_036_854_776, -9_223_372_036_854_776]
)
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
def test_a_timestamp_beyond_sparks_is_refused_and_never_another_one(codec: Codec, timestamp: int) -> None:
    records = [Record(b"k", b"v", (), 1_000), Record(b"k", b"v", (), timestamp)]
    chunk = a_chunk(bytes(build_batch(records, base_offset=7, codec=codec)))

    with pytest.raises(SparkRefused, match=rf"orders-0 has at offset 8 the timestamp {timestamp}, beyond"):
        decoded(chunk)
    assert decoded(chunk, until=8).num_rows == 1, "it is not of this range"
    assert decoded(chunk, schema=arrow_schema(["key", "value"])).num_rows == 2


def test_the_last_timestamp_that_spark_can_hold_is_read() -> None:
    records = [Record(b"k", b"v", (), timestamp) for timestamp in (-1, 9_223_372_036_854_775)]

    table = decoded(a_chunk(bytes(build_batch(records))))

    assert table.column("timestamp").cast(pa.int64()).to_pylist() == [-1_000, 9_223_372_036_854_775_000]
