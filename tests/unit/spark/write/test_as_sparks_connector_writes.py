"""A sink takes the frames that Spark's own connector takes, and refuses those that it refuses."""

from __future__ import annotations

import pytest

pytest.importorskip("numba")
pytest.importorskip("pyspark")

import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    StringType,
    StructField,
    StructType,
)

from ottla.records.batch import batches
from ottla.records.compression import Codec
from ottla.records.record import read_records
from ottla.spark.errors import SparkRefused
from ottla.spark.options.schema import check_projection, check_written
from ottla.spark.options.write import write_options
from ottla.spark.source import OttlaDataSource
from ottla.spark.write.encoding import ArrowEncoder
from support.client.fake_client import SERVERS

SINK = {"kafka.bootstrap.servers": SERVERS}
TEXT, NUMBER = StringType(), IntegerType()


def schema(**columns: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in columns.items()])


def headers(key: str, value: str) -> ArrayType:
    return ArrayType(schema(**{key: TEXT, value: BinaryType()}))


def an_encoder() -> ArrowEncoder:
    return ArrowEncoder(
        topic="orders",
        codec=Codec.NONE,
        batch_bytes=4_000,
        record_bytes_max=1_000_000,
        preserve_timestamp=False,
        sticky=lambda _: 0,
    )


def test_columns_that_are_not_written_may_have_any_type() -> None:
    check_written(schema(value=TEXT, topic=NUMBER), "orders")
    check_written(schema(value=TEXT, timestamp=TEXT, partition=NUMBER), "orders")

    with pytest.raises(SparkRefused, match="column 'topic' has the type int"):
        check_written(schema(value=TEXT, topic=NUMBER), None)
    with pytest.raises(SparkRefused, match="column 'timestamp' has the type string"):
        check_written(schema(value=TEXT, timestamp=TEXT), "orders", preserves_timestamp=True)


def test_the_fields_of_headers_may_be_written_in_capitals() -> None:
    check_written(schema(value=TEXT, headers=headers("KEY", "Value")), "orders")
    with pytest.raises(SparkRefused, match="column 'headers' has the type"):
        check_written(schema(value=TEXT, headers=headers("name", "value")), "orders")
    with pytest.raises(SparkRefused, match="gives column 'headers' the type"):
        check_projection(schema(headers=headers("KEY", "Value")))

    kind = pa.list_(pa.field("element", pa.struct([("KEY", pa.string()), ("Value", pa.binary())])))
    rows = pa.RecordBatch.from_arrays(
        [pa.array([b"v"]), pa.array([[{"KEY": "h", "Value": b"x"}]], kind)], names=["value", "headers"]
    )
    (batch,) = an_encoder().encode(rows, {"orders": 1}, 1_234)
    batch.stamp(producer_id=7, producer_epoch=0, base_sequence=0)
    (header,) = batches(batch.data)
    (record,) = read_records(batch.data, header)
    assert tuple(record.headers) == (("h", b"x"),)


@pytest.mark.parametrize("number", [-1, -2, 3])
def test_a_partition_that_no_topic_has_is_refused_and_null_is_none(number: int) -> None:
    rows = pa.RecordBatch.from_pydict(
        {"value": [b"a", b"b"], "partition": pa.array([None, number], pa.int32())}
    )

    with pytest.raises(SparkRefused, match=f"a row names partition {number} of topic orders, which has 3"):
        list(an_encoder().encode(rows, {"orders": 3}, 1_234))
    assert len(list(an_encoder().encode(rows.slice(0, 1), {"orders": 3}, 1_234))) == 1


def test_the_topic_of_the_option_is_trimmed() -> None:
    assert write_options({**SINK, "topic": " orders "}).topic == "orders"


def test_a_batch_cannot_overwrite_a_topic() -> None:
    source = OttlaDataSource({**SINK, "topic": "orders"})

    with pytest.raises(SparkRefused, match=r"mode 'overwrite': .*; say .mode\('append'\)"):
        source.writer(schema(value=TEXT), overwrite=True)
