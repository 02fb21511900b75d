"""validate: JSON values against a schema; what does not fit goes, with its cause, to a dead-letter topic."""

from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from ottla.spark.checkpoint import check_checkpoint
from ottla.spark.errors import refuse
from ottla.spark.jobs.report import Report, Table
from ottla.spark.jobs.streams import Tell, run_to_end, topic_stream

UNREADABLE = "_unreadable"
CAUSE = "_cause"
CAUSE_HEADER = "ottla.cause"
ORIGIN_HEADER = "ottla.origin"


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


def run(spark: SparkSession, options: ValidateOptions, tell: Tell) -> Report:
    """Check what is new since the last run."""
    check_checkpoint("checkpoint", options.checkpoint)
    schema = _schema(options.schema)
    counts: dict[str, int] = {}
    stream = topic_stream(spark, options.bootstrap_servers, options.topic)

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
    rows = run_to_end(writer, options.follow_s, tell)
    good = counts.pop("", 0)
    table = Table("bad records", ("cause", "records"), [*sorted(counts.items())])
    return Report(
        f"{rows} records checked, {good} valid, {sum(counts.values())} to {options.dead_letter_topic}",
        [table],
    )


def with_cause(rows: DataFrame, schema: StructType) -> DataFrame:
    """The rows, and in ``_cause`` what is wrong with each; null if nothing is."""
    # What is missing must be seen by us: Spark reads a field that is not nullable as null all the same.
    fields = [StructField(field.name, field.dataType) for field in schema.fields]
    reading = StructType([*fields, StructField(UNREADABLE, StringType())])
    parsed = F.from_json(
        F.col("value").cast("string"),
        reading,
        {"columnNameOfCorruptRecord": UNREADABLE, "mode": "PERMISSIVE"},
    )
    needed = [field.name for field in schema.fields if not field.nullable]
    cause: Column = F.when(F.col("value").isNull(), F.lit("the value is null"))
    cause = cause.when(
        F.col("_json").isNull() | F.col(f"_json.{UNREADABLE}").isNotNull(),
        F.lit("the value is no JSON of the schema"),
    )
    cause = reduce(
        lambda so_far, name: so_far.when(F.col(f"_json.{name}").isNull(), F.lit(f"field {name} is missing")),
        needed,
        cause,
    )
    return rows.withColumn("_json", parsed).withColumn(CAUSE, cause).drop("_json")


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
