"""Asks Ottla's source and Spark's own connector the same questions, and writes down both answers.

A program of its own, because the connector's jars must be there when the JVM starts:
``spark_compare.py QUESTIONS ANSWERS JARS``. A question names the cluster, the kind of query and its options.
An answer is a list of rows as text in a fixed order, or ``["refused"]`` where the query failed.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from ottla.spark.session import spark_session

CONNECTORS = ("ottla", "kafka")
FOLLOW_S_MAX = 60.0


class Comparison:
    """Both connectors in one session.

    A refusal is PySpark's exception, or py4j's where PySpark has none for what Java threw: the official
    connector fails so where an assertion of its own does not hold.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def ask(self, kind: str, question: dict[str, Any]) -> list[Any]:
        """One connector's answer."""
        how: Callable[[str, dict[str, Any]], list[Any]] = getattr(self, question["how"])
        try:
            return how(kind, question)
        except (PySparkException, Py4JJavaError) as refused:
            if not question.get("may_fail"):
                sys.stderr.write(f"{kind} refused {question}: {refused}\n")
            return ["refused"]

    def schema(self, kind: str, question: dict[str, Any]) -> list[Any]:
        return [self._batch(kind, question).schema.json()]

    def batch(self, kind: str, question: dict[str, Any]) -> list[Any]:
        return _as_text(self._batch(kind, question))

    def split(self, kind: str, question: dict[str, Any]) -> list[Any]:
        """The rows of each task, so that it is seen where ranges were cut."""
        tasks = self._batch(kind, question).selectExpr("spark_partition_id() AS task", "partition", "offset")
        spans = tasks.groupBy("task", "partition").agg({"offset": "min", "*": "count"}).collect()
        return sorted([row["partition"], row["min(offset)"], row["count(1)"]] for row in spans)

    def stream(self, kind: str, question: dict[str, Any]) -> list[Any]:
        """The rows of each micro-batch of a query over what is there."""
        batches: dict[int, list[str]] = {}
        self._run(self._stream(kind, question), lambda rows, number: batches.update({number: _as_text(rows)}))
        return [rows for _, rows in sorted(batches.items()) if rows]

    def resumed(self, kind: str, question: dict[str, Any]) -> list[Any]:
        """All rows of a query that is stopped after each batch and started again."""
        found: list[str] = []
        with tempfile.TemporaryDirectory(prefix="ottla-compare-") as checkpoint:
            for _ in range(question["runs"]):
                self._run(
                    self._stream(kind, question), lambda rows, _: found.extend(_as_text(rows)), checkpoint
                )
        return found

    def followed(self, kind: str, question: dict[str, Any]) -> list[Any]:
        """The rows of a query that goes on, when it has seen as many as there are."""
        found: list[str] = []
        writer = self._stream(kind, question).writeStream.foreachBatch(
            lambda rows, _: found.extend(_as_text(rows))
        )
        with tempfile.TemporaryDirectory(prefix="ottla-compare-") as checkpoint:
            query = (
                writer.option("checkpointLocation", checkpoint).trigger(processingTime="0.2 seconds").start()
            )
            give_up = time.monotonic() + FOLLOW_S_MAX
            while len(found) < question["rows"] and time.monotonic() < give_up:
                time.sleep(0.05)
            query.stop()
        return sorted(found)

    def written(self, kind: str, question: dict[str, Any]) -> list[Any]:
        """A batch write of the same rows to a topic for each; what the *other* connector reads there."""
        columns = [column.replace("$TOPIC", question["topics"][kind]) for column in question["columns"]]
        rows = self._spark.range(question["rows"]).selectExpr(*columns)
        self._to_topic(rows.write.format(kind), question, kind).mode(question.get("mode", "append")).save()
        return self._seen_by_other(kind, question)

    def streamed(self, kind: str, question: dict[str, Any]) -> list[Any]:
        """A stream from one connector into the other's sink; what the first reads there."""
        (other,) = set(CONNECTORS) - {kind}
        rows = self._stream(other, question).select("key", "value", "headers")
        writer = self._to_topic(rows.writeStream.format(kind), question, kind)
        with tempfile.TemporaryDirectory(prefix="ottla-compare-") as checkpoint:
            query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
            query.awaitTermination()
        return self._seen_by_other(kind, question)

    def _seen_by_other(self, kind: str, question: dict[str, Any]) -> list[Any]:
        (other,) = set(CONNECTORS) - {kind}
        options = {"subscribe": question["topics"][kind], "includeHeaders": "true"}
        rows = self._batch(other, {**question, "options": options})
        return _as_text(rows.select(*question["compared"]))

    def _to_topic(self, writer: Any, question: dict[str, Any], kind: str) -> Any:
        writer = writer.option("kafka.bootstrap.servers", question["servers"]).option(
            "includeHeaders", "true"
        )
        if question.get("names_topic", True):
            writer = writer.option("topic", question["topics"][kind])
        return writer

    def _batch(self, kind: str, question: dict[str, Any]) -> DataFrame:
        reader = self._spark.read.format(kind).option("kafka.bootstrap.servers", question["servers"])
        return reader.options(**question["options"]).load()

    def _stream(self, kind: str, question: dict[str, Any]) -> DataFrame:
        reader = self._spark.readStream.format(kind).option("kafka.bootstrap.servers", question["servers"])
        return reader.options(**question["options"]).load()

    def _run(
        self, rows: DataFrame, take: Callable[[DataFrame, int], None], checkpoint: str | None = None
    ) -> None:
        with tempfile.TemporaryDirectory(prefix="ottla-compare-") as temporary:
            writer = rows.writeStream.foreachBatch(take).option("checkpointLocation", checkpoint or temporary)
            writer.trigger(availableNow=True).start().awaitTermination()


def _as_text(rows: DataFrame) -> list[str]:
    return sorted(repr(tuple(row)) for row in rows.collect())


def main(questions: Path, answers: Path, jars: str) -> None:
    settings = {"spark.jars": jars, "spark.driver.memory": "1g"}
    spark = spark_session("local[2]", app_name="compare", settings=settings, is_brief=True)
    comparison = Comparison(spark)
    found = {}
    for name, question in json.loads(questions.read_text(encoding="utf-8")).items():
        began = time.monotonic()
        found[name] = {kind: comparison.ask(kind, question) for kind in CONNECTORS}
        sys.stderr.write(f"{name}: {time.monotonic() - began:.1f} s\n")
        answers.write_text(json.dumps(found), encoding="utf-8")
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
