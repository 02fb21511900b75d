"""Arrow rows become sound batches, on the partitions that the Java client would choose."""

from __future__ import annotations

import pytest

pytest.importorskip("numba")
pytest.importorskip("pyspark")

import pyarrow as pa

from ottla.client.producing.partitioner import partition_of_key
from ottla.records.batch import batches, crc_is_valid
from ottla.records.compression import Codec
from ottla.records.record import Record, read_records
from ottla.spark.errors import SparkRefused
from ottla.spark.write.encoding import ArrowEncoder

HEADERS = pa.list_(pa.field("element", pa.struct([("key", pa.string()), ("value", pa.binary())])))
STICKY = 2


def some_rows(count: int) -> pa.RecordBatch:
    keys = [None if n % 5 == 0 else bytes((n * 31 + at) % 256 for at in range(n % 23)) for n in range(count)]
    values = [None if n % 7 == 0 else b"v" * (n * 3 % 500) for n in range(count)]
    headers = [
        None if n % 4 == 0 else [{"key": f"h{at}", "value": None if at % 2 else b"x"} for at in range(n % 4)]
        for n in range(count)
    ]
    arrays = [pa.array(keys, pa.binary()), pa.array(values, pa.binary()), pa.array(headers, HEADERS)]
    return pa.RecordBatch.from_arrays(arrays, names=["key", "value", "headers"])


def an_encoder(
    *,
    topic: str | None = "orders",
    codec: Codec = Codec.NONE,
    batch_bytes: int = 4_000,
    record_bytes_max: int = 1_000_000,
    sticky: int = STICKY,
) -> ArrowEncoder:
    return ArrowEncoder(
        topic=topic,
        codec=codec,
        batch_bytes=batch_bytes,
        record_bytes_max=record_bytes_max,
        preserve_timestamp=False,
        sticky=lambda _: sticky,
    )


def written(
    encoder: ArrowEncoder, rows: pa.RecordBatch, counts: dict[str, int]
) -> dict[tuple[str, int], list[Record]]:
    """What a broker would find, by topic and partition."""
    found: dict[tuple[str, int], list[Record]] = {}
    for batch in encoder.encode(rows, counts, now_ms=1_234):
        batch.stamp(producer_id=77, producer_epoch=3, base_sequence=9)
        (header,) = batches(batch.data)
        assert crc_is_valid(batch.data, header)
        assert (header.producer_id, header.base_sequence, header.size) == (77, 9, len(batch.data))
        found.setdefault((batch.topic, batch.partition), []).extend(read_records(batch.data, header))
    return found


@pytest.mark.parametrize("codec", list(Codec))
def test_rows_arrive_in_order_on_the_partition_of_their_key(codec: Codec) -> None:
    rows = some_rows(400).slice(7, 380)

    found = written(an_encoder(codec=codec), rows, {"orders": 5})

    expected: dict[tuple[str, int], list[tuple[object, ...]]] = {}
    for row in rows.to_pylist():
        partition = STICKY if row["key"] is None else partition_of_key(row["key"], 5)
        headers = tuple((pair["key"], pair["value"]) for pair in row["headers"] or ())
        expected.setdefault(("orders", partition), []).append((row["key"], row["value"], headers))
    shown = {at: [(r.key, r.value, tuple(r.headers)) for r in records] for at, records in found.items()}
    assert shown == expected


def test_a_row_can_name_its_topic_and_its_partition() -> None:
    rows = pa.RecordBatch.from_pydict(
        {
            "topic": ["a", "b", "a", "a"],
            "partition": [1, 0, None, 0],
            "key": [b"k"] * 4,
            "value": [b"0", b"1", b"2", b"3"],
        }
    )

    found = written(an_encoder(topic=None, sticky=0), rows, {"a": 2, "b": 1})

    by_key = partition_of_key(b"k", 2)
    expected: dict[tuple[str, int], list[bytes]] = {("a", 1): [b"0"], ("b", 0): [b"1"], ("a", 0): [b"3"]}
    expected["a", by_key] = sorted([*expected["a", by_key], b"2"])
    assert {at: [r.value for r in records] for at, records in found.items()} == expected


def test_a_null_topic_is_refused() -> None:
    rows = pa.RecordBatch.from_pydict({"topic": pa.array(["a", None]), "value": [b"0", b"1"]})

    with pytest.raises(SparkRefused, match="null in column 'topic'"):
        written(an_encoder(topic=None), rows, {"a": 1})


def test_a_partition_that_the_topic_does_not_have_is_refused() -> None:
    rows = pa.RecordBatch.from_pydict({"partition": pa.array([0, 9], pa.int32()), "value": [b"0", b"1"]})

    with pytest.raises(SparkRefused, match="partition 9 of topic orders, which has 2"):
        written(an_encoder(), rows, {"orders": 2})


def test_a_record_larger_than_a_batch_travels_alone() -> None:
    rows = pa.RecordBatch.from_pydict({"value": [b"a", b"b" * 50_000, b"c"]})

    found = written(an_encoder(), rows, {"orders": 3})

    assert [len(r.value or b"") for r in found["orders", STICKY]] == [1, 50_000, 1]


def test_a_record_larger_than_a_request_is_refused_by_the_settings_name() -> None:
    rows = pa.RecordBatch.from_pydict({"value": [b"b" * 50_000]})

    with pytest.raises(SparkRefused, match=r"kafka\.max\.request\.size=20000"):
        written(an_encoder(record_bytes_max=20_000), rows, {"orders": 3})


def test_a_batch_size_of_zero_makes_batches_of_one_record() -> None:
    rows = pa.RecordBatch.from_pydict({"value": [b"a", b"b" * 500]})

    batches_made = list(an_encoder(batch_bytes=0).encode(rows, {"orders": 3}, now_ms=1))

    assert [batch.header.record_count for batch in batches_made] == [1, 1]


def test_a_request_smaller_than_a_batch_limits_batches_and_records() -> None:
    small = pa.RecordBatch.from_pydict({"value": [b"a" * 60] * 4})
    large = pa.RecordBatch.from_pydict({"value": [b"a" * 60, b"b" * 200]})

    made = list(an_encoder(record_bytes_max=150).encode(small, {"orders": 3}, now_ms=1))

    assert [batch.header.record_count for batch in made] == [2, 2]
    with pytest.raises(SparkRefused, match=r"kafka\.max\.request\.size=150"):
        list(an_encoder(record_bytes_max=150).encode(large, {"orders": 3}, now_ms=1))
