"""What the streaming jobs share: a source, a trigger, and progress while they run."""

from collections.abc import Mapping
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from ottla.spark.errors import SparkRefused
from ottla.spark.jobs.shared.brokers import Watch
from ottla.spark.jobs.shared.report import Progress

LOOK_S = 1.0
BATCH_RECORDS = 5_000_000
"""About so many records a job reads in a batch: it shows progress, and a crash repeats no more."""
COMMITTED = {"kafka.isolation.level": "read_committed"}
"""What jobs read unless they are told otherwise: an aborted transaction's records were never there."""
ANOTHER_CHECKPOINT = "begin anew with another --checkpoint"


def topic_stream(
    spark: SparkSession,
    bootstrap_servers: str,
    topics: str,
    *,
    starting: str = "earliest",
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """A stream of topics, with headers: committed records, in batches that have a limit."""
    reader = (
        spark.readStream.format("ottla")
        .option("kafka.bootstrap.servers", bootstrap_servers)
        .option("subscribe", topics)
        .option("startingOffsets", starting)
        .option("includeHeaders", "true")
    )
    limits = {"maxOffsetsPerTrigger": str(BATCH_RECORDS)}
    return reader.options(**{**COMMITTED, **limits, **(options or {})}).load()


def run_to_end(
    writer: Any, follow_s: float | None, progress: Progress, checkpoint: str, anew: str, brokers: Watch
) -> int:
    """Run a query over what there is, or (``follow_s``) for ever; how many rows it has read.

    ``anew``: the advice to the user after lost data, which ends a job. The news of ``brokers`` are shown
    while the query runs.
    """
    trigger = {"availableNow": True} if follow_s is None else {"processingTime": f"{follow_s} seconds"}
    query: StreamingQuery = writer.trigger(**trigger).start()
    try:
        with brokers:
            return _await_end(query, progress, checkpoint, brokers)
    except StreamingQueryException as error:
        raise _told_for_jobs(explained(error), anew) from error


def _await_end(query: StreamingQuery, progress: Progress, checkpoint: str, brokers: Watch) -> int:
    seen, rows = -1, 0
    while True:
        progress.left = (
            f"{rows} records are done, in whole batches, as noted in {checkpoint};"
            " the same command goes on from there"
        )
        is_over = query.awaitTermination(int(LOOK_S))  # Raises what ended a query, at once or long ago.
        for line in brokers.news():
            progress.tell(line)
        for batch in query.recentProgress:
            if batch["batchId"] > seen and batch["numInputRows"]:
                seen = batch["batchId"]
                rows += batch["numInputRows"]
                progress.tell(f"batch {seen}: {batch['numInputRows']} records, {rows} in all")
        if is_over:
            return rows


def _told_for_jobs(error: Exception, anew: str) -> Exception:
    """Other advice after lost data than in a query: a job has no ``failOnDataLoss``."""
    if not isinstance(error, SparkRefused):
        return error
    what, separator, _ = error.what.partition("; with failOnDataLoss=false")
    return SparkRefused(what, anew) if separator else error


def explained(error: Exception) -> Exception:
    """The sentence of ours in what Spark wraps around it; the error itself if there is none."""
    for line in reversed(str(error).splitlines()):
        name, _, text = line.partition(": ")
        if name.startswith("ottla.spark.errors."):
            what, _, remedy = text.rpartition("; ")
            return SparkRefused(what, remedy)
    return error


def spark_said(error: Exception) -> str:
    """The one line in Spark's error that says what was wrong; the rest of it are stacks."""
    first, _, rest = str(error).strip().partition("\n")
    if first.startswith("An error occurred while calling"):
        first = rest.strip().partition("\n")[0].removeprefix(": ")
    return first.partition("terminated with exception: ")[2] or first
