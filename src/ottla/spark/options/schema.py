"""The columns: Spark's Kafka columns to read, and those that a sink takes."""

from collections.abc import Iterable

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from ottla.spark.errors import SparkRefused

HEADERS = ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))

READ_COLUMNS: dict[str, DataType] = {
    "key": BinaryType(),
    "value": BinaryType(),
    "topic": StringType(),
    "partition": IntegerType(),
    "offset": LongType(),
    "timestamp": TimestampType(),
    "timestampType": IntegerType(),
    "headers": HEADERS,
}

WRITE_COLUMNS: dict[str, tuple[DataType, ...]] = {
    "key": (BinaryType(), StringType()),
    "value": (BinaryType(), StringType()),
    "topic": (StringType(),),
    "partition": (IntegerType(),),
    "headers": (HEADERS,),
    "timestamp": (TimestampType(),),
}


def read_schema(include_headers: bool) -> StructType:
    """The columns of a read without a schema of the user's."""
    names = [name for name in READ_COLUMNS if include_headers or name != "headers"]
    return StructType([StructField(name, READ_COLUMNS[name]) for name in names])


def check_projection(schema: StructType) -> None:
    """A schema given by the user is a choice of columns; anything else is refused by name."""
    for field in schema.fields:
        known = READ_COLUMNS.get(field.name)
        if known is None:
            raise SparkRefused(
                f"the schema names a column {field.name!r} that Kafka records do not have",
                f"choose from {', '.join(READ_COLUMNS)}",
            )
        if not _is_same(field.dataType, known):
            raise SparkRefused(
                f"the schema gives column {field.name!r} the type {field.dataType.simpleString()}",
                f"it is {known.simpleString()}; cast it after load()",
            )


def check_written(schema: StructType, topic_option: str | None, *, preserves_timestamp: bool = False) -> None:
    """What a sink is given must have a value and, unless the option names it, a topic.

    As in Spark's connector, columns that are not written may be of any type, and the fields of headers may
    be written in capitals.
    """
    names = set(schema.names)
    if "value" not in names:
        raise SparkRefused(
            f"there is no column 'value' among {_listed(schema.names)}",
            "name the column that is to be written: df.selectExpr('... AS value')",
        )
    if topic_option is None and "topic" not in names:
        raise SparkRefused(
            "neither option 'topic' nor a column 'topic' says where to write", "add .option('topic', NAME)"
        )
    unused = {"topic"} if topic_option is not None else set()
    unused |= set() if preserves_timestamp else {"timestamp"}
    for field in schema.fields:
        wanted = WRITE_COLUMNS.get(field.name)
        if wanted is None or field.name in unused:
            continue
        if field.dataType.simpleString().lower() not in [one.simpleString() for one in wanted]:
            types = " or ".join(one.simpleString() for one in wanted)
            raise SparkRefused(
                f"column {field.name!r} has the type {field.dataType.simpleString()}",
                f"a sink takes {types}; cast it",
            )


def _is_same(given: DataType, known: DataType) -> bool:
    """Types are equal but for nullability, which says nothing about bytes."""
    return given.simpleString() == known.simpleString()


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "no columns"
