"""validate: JSON values against a schema; what does not fit goes, with its cause, to a dead-letter topic."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from uuid import uuid4

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BooleanType, DataType, MapType, StringType, StructField, StructType

from ottla.spark.errors import refuse
from ottla.spark.jobs.shared.brokers import BrokerWatch
from ottla.spark.jobs.shared.cluster import check_sources, check_target
from ottla.spark.jobs.shared.report import Progress, Report, Table
from ottla.spark.jobs.shared.streams import ANOTHER_CHECKPOINT, run_to_end, topic_stream
from ottla.spark.runtime.checkpoint import check_checkpoint, claim_checkpoint, has_begun

UNREADABLE = "_unreadable"
CAUSE = "_cause"
CAUSE_HEADER = "ottla.cause"
ORIGIN_HEADER = "ottla.origin"

# A value is read as one field of an object, with another field behind it: Spark reads the first object of a
# text and does not look at the rest. No record can contain these names.
_VALUE, _END = f"value {uuid4().hex}", f"end {uuid4().hex}"

Test = Callable[[Column], Column]


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidateOptions:
    """``schema`` in Spark's DDL; fields marked ``NOT NULL`` must be there."""

    bootstrap_servers: str
    topic: str
    schema: str
    dead_letter_topic: str
    checkpoint: str
    valid_topic: str | None = None
    follow_s: float | None = None
    kafka: Mapping[str, str] = field(default_factory=dict)
    """Settings of the client that reads."""


def check(options: ValidateOptions) -> None:
    """Refuse what can be seen to be wrong without Spark."""
    if not has_begun(options.checkpoint):  # Otherwise the query itself reports what is gone.
        check_sources("topic", options.topic, options.bootstrap_servers)
    for target in (options.dead_letter_topic, options.valid_topic):
        if target is not None:
            check_target(target, options.bootstrap_servers)
    check_checkpoint("checkpoint", options.checkpoint)
    claim_checkpoint("checkpoint", options.checkpoint, "validate")


def run(spark: SparkSession, options: ValidateOptions, progress: Progress) -> Report:
    """Check what is new since the last run."""
    schema = _schema(options.schema)
    counts: dict[str, int] = {}
    stream = topic_stream(spark, options.bootstrap_servers, options.topic, options=options.kafka)

    def check(batch: DataFrame, _: int) -> None:
        judged = with_cause(batch, schema).persist()
        for row in judged.groupBy(CAUSE).count().collect():
            counts[row[CAUSE] or ""] = counts.get(row[CAUSE] or "", 0) + row["count"]
        _write(_dead_letters(judged.where(F.col(CAUSE).isNotNull())), options, options.dead_letter_topic)
        if options.valid_topic is not None:
            good = judged.where(F.col(CAUSE).isNull()).select("key", "value", "headers")
            _write(good, options, options.valid_topic)
        judged.unpersist()

    writer = stream.writeStream.foreachBatch(check).option("checkpointLocation", options.checkpoint)
    brokers = BrokerWatch(options.bootstrap_servers)
    rows = run_to_end(writer, options.follow_s, progress, options.checkpoint, ANOTHER_CHECKPOINT, brokers)
    good = counts.pop("", 0)
    table = Table("bad records", ("cause", "records"), [*sorted(counts.items())])
    return Report(
        f"{rows} records checked, {good} valid, {sum(counts.values())} to {options.dead_letter_topic}",
        [table],
    )


def with_cause(rows: DataFrame, schema: StructType) -> DataFrame:
    """The rows, and in ``_cause`` what is wrong with each; null if nothing is."""
    # We look for missing fields ourselves: Spark reads a field that is not nullable as null all the same.
    fields = [StructField(field.name, field.dataType) for field in schema.fields]
    reading = StructType(
        [
            StructField(_VALUE, StructType(fields)),
            StructField(_END, BooleanType()),
            StructField(UNREADABLE, StringType()),
        ]
    )
    parsed = F.from_json(
        F.concat(F.lit(f'{{"{_VALUE}":'), F.col("value").cast("string"), F.lit(f',"{_END}":true}}')),
        reading,
        {"columnNameOfCorruptRecord": UNREADABLE, "mode": "PERMISSIVE"},
    )
    json = F.col("_json")
    value = json.getField(_VALUE)
    cause: Column = F.when(F.col("value").isNull(), F.lit("the value is null"))
    cause = cause.when(
        value.isNull() | json.getField(_END).isNull() | json.getField(UNREADABLE).isNotNull(),
        F.lit("the value is not JSON of the schema"),
    )
    for name, is_missing in _needed(schema, ""):
        cause = cause.when(is_missing(value), F.lit(f"field {name} is missing"))
    return rows.withColumn("_json", parsed).withColumn(CAUSE, cause).drop("_json")


def _needed(kind: DataType, path: str) -> Iterator[tuple[str, Test]]:
    """The fields below a value that must be there, however deep, and how to see that one is not.

    What is nullable may be absent, and then nothing below it is asked for.
    """
    match kind:
        case StructType():
            for field in kind.fields:
                name = f"{path}{field.name}"
                if not field.nullable:
                    yield name, _in_field(field.name, lambda found: found.isNull())
                for below, test in _needed(field.dataType, f"{name}."):
                    yield below, _in_field(field.name, _if_there(test))
        case ArrayType():
            for below, test in _needed(kind.elementType, path):
                yield below, _in_any(test, lambda found: found)
        case MapType():
            for below, test in _needed(kind.valueType, path):
                yield below, _in_any(test, F.map_values)


def _in_field(name: str, test: Test) -> Test:
    return lambda found: test(found.getField(name))


def _if_there(test: Test) -> Test:
    return lambda found: found.isNotNull() & test(found)


def _in_any(test: Test, elements: Test) -> Test:
    return lambda found: F.exists(elements(found), _if_there(test))


def _schema(ddl: str) -> StructType:
    from pyspark.errors import ParseException

    try:
        schema = StructType.fromDDL(ddl)
    except ParseException as wrong:
        why = str(wrong).strip().splitlines()[0]
        raise refuse("schema", ddl, why, "write 'id BIGINT NOT NULL, name STRING'") from None
    assert isinstance(schema, StructType), "DDL of columns is a struct"
    return schema


def _dead_letters(bad: DataFrame) -> DataFrame:
    origin = F.concat_ws("-", "topic", "partition", "offset")
    added = F.array(
        F.struct(F.lit(CAUSE_HEADER).alias("key"), F.col(CAUSE).cast("binary").alias("value")),
        F.struct(F.lit(ORIGIN_HEADER).alias("key"), origin.cast("binary").alias("value")),
    )
    headers = F.when(F.col("headers").isNull(), added).otherwise(F.concat(F.col("headers"), added))
    return bad.select("key", "value", headers.alias("headers"))


def _write(rows: DataFrame, options: ValidateOptions, topic: str) -> None:
    (
        rows.write.format("ottla")
        .option("kafka.bootstrap.servers", options.bootstrap_servers)
        .option("topic", topic)
        .mode("append")
        .save()
    )
