"""What the streaming jobs share: a source, a trigger, and progress while they run."""

from collections.abc import Callable, Mapping
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from ottla.spark.errors import SparkRefused

Tell = Callable[[str], None]
LOOK_S = 1.0


def topic_stream(
    spark: SparkSession,
    bootstrap_servers: str,
    topics: str,
    *,
    starting: str = "earliest",
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """A stream of topics, with headers."""
    reader = (
        spark.readStream.format("ottla")
        .option("kafka.bootstrap.servers", bootstrap_servers)
        .option("subscribe", topics)
        .option("startingOffsets", starting)
        .option("includeHeaders", "true")
    )
    for name, value in (options or {}).items():
        reader = reader.option(name, value)
    return reader.load()


def run_to_end(writer: Any, follow_s: float | None, tell: Tell) -> int:
    """Run a query over what there is, or (``follow_s``) until it is stopped; how many rows it has read."""
    trigger = {"availableNow": True} if follow_s is None else {"processingTime": f"{follow_s} seconds"}
    query: StreamingQuery = writer.trigger(**trigger).start()
    seen, rows = -1, 0
    try:
        while True:
            is_over = query.awaitTermination(int(LOOK_S))  # Raises what ended a query, at once or long ago.
            for progress in query.recentProgress:
                if progress["batchId"] > seen and progress["numInputRows"]:
                    seen = progress["batchId"]
                    rows += progress["numInputRows"]
                    tell(f"batch {seen}: {progress['numInputRows']} records, {rows} in all")
            if is_over:
                return rows
    except KeyboardInterrupt:
        query.stop()
        return rows
    except StreamingQueryException as error:
        raise explained(error) from error


def explained(error: Exception) -> Exception:
    """The sentence of ours in what Spark wraps around it; the error itself if there is none."""
    for line in reversed(str(error).splitlines()):
        name, _, text = line.partition(": ")
        if name.startswith("ottla.spark.errors."):
            what, _, remedy = text.rpartition("; ")
            return SparkRefused(what, remedy)
    return error
