"""Ottla's Spark data source beside Spark's own Kafka connector, in one run, on one cluster.

    python bench/spark.py                       # the full size: 4,000,000 rows, some minutes
    python bench/spark.py --rows 20000          # a quick look

Reads end in Spark's noop sink, so that only the source is measured; each is run warm, and the best of three
counts. The empty trigger is measured against a Python source that never has anything.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from history import record

from ottla.client.admin.topics import a_topic, create_topics
from ottla.client.blocking import Client
from ottla.launch.cluster import Cluster
from ottla.spark.session import spark_session
from support.spark_connector import connector_jars

READ_BAR, PROJECTION_BAR, WRITE_BAR = 2.0, 4.0, 1.5
REPEATS = 3
PARTITIONS = 4


class Bench:
    """Topics filled by Spark itself, and both connectors over them."""

    def __init__(self, spark: Any, servers: str, rows: int) -> None:
        self.spark = spark
        self.servers = servers
        self.rows = rows

    def make_topics(self, names: list[str]) -> None:
        with Client(self.servers) as client:
            client.run(
                create_topics, [a_topic(name, partitions=PARTITIONS, replication_factor=1) for name in names]
            )

    def fill(
        self, kind: str, topic: str, value_bytes: int, *, codec: str = "none", headers: bool = False
    ) -> None:
        """Write rows of a given size."""
        columns = ["lpad(cast(id AS string), 8, '0') AS key", f"repeat('x', {value_bytes}) AS value"]
        if headers:
            columns.append("array(struct('h' AS key, cast('v' AS binary) AS value)) AS headers")
        writer = self.spark.range(0, self.rows, 1, 2).selectExpr(*columns).write.format(kind)
        writer = writer.option("kafka.bootstrap.servers", self.servers).option("topic", topic)
        if headers:
            writer = writer.option("includeHeaders", "true")
        writer.option("kafka.compression.type", codec).mode("append").save()

    def read(self, kind: str, topic: str, *, headers: bool = False, value_only: bool = False) -> None:
        """Read a topic into nothing."""
        reader = self.spark.read.format(kind).option("kafka.bootstrap.servers", self.servers)
        reader = reader.option("subscribe", topic)
        if headers:
            reader = reader.option("includeHeaders", "true")
        if value_only and kind == "ottla":
            reader = reader.schema("value BINARY")
        rows = reader.load()
        rows = rows.select("value") if value_only else rows
        rows.write.format("noop").mode("overwrite").save()

    def rate(self, action: Callable[[], None], repeats: int = REPEATS) -> float:
        """Rows per second, the best of some."""
        best = 0.0
        for _ in range(repeats):
            began = time.perf_counter()
            action()
            best = max(best, self.rows / (time.perf_counter() - began))
        return best


def side_by_side(
    bench: Bench, name: str, action: Callable[[str], None], bar: float | None
) -> dict[str, float]:
    """One measurement of both; the first run of each is thrown away."""
    for kind in ("ottla", "kafka"):
        action(kind)
    ours, theirs = (bench.rate(lambda kind=kind: action(kind)) for kind in ("ottla", "kafka"))  # type: ignore[misc]
    ratio = ours / theirs
    verdict = "" if bar is None else f"  (bar {bar} x: {'met' if ratio >= bar else 'NOT met'})"
    print(
        f"{name:<28} ottla {ours / 1e6:6.2f}  official {theirs / 1e6:6.2f} M rows/s  {ratio:5.2f} x{verdict}"
    )
    return {"ottla_rows_per_s": round(ours), "official_rows_per_s": round(theirs), "ratio": round(ratio, 2)}


def run(rows: int) -> dict[str, Any]:
    jars = ",".join(map(str, connector_jars()))
    settings = {"spark.jars": jars, "spark.driver.memory": "4g"}
    numbers: dict[str, Any] = {"rows": rows}
    with Cluster(1) as cluster:
        spark = spark_session("local[2]", app_name="bench", settings=settings)
        bench = Bench(spark, cluster.bootstrap_servers, rows)
        topics: dict[str, dict[str, Any]] = {
            "plain": {"value_bytes": 100},
            "large": {"value_bytes": 1024},
            "lz4": {"value_bytes": 100, "codec": "lz4"},
            "headers": {"value_bytes": 100, "headers": True},
        }
        bench.make_topics([*topics, "written-by-ottla", "written-by-kafka"])
        for topic, shape in topics.items():
            bench.fill("ottla", topic, **shape)
        for topic, shape in topics.items():
            headers = bool(shape.get("headers"))
            numbers[topic] = side_by_side(
                bench,
                f"read {topic}",
                lambda kind, t=topic, h=headers: bench.read(kind, t, headers=h),
                READ_BAR,  # type: ignore[misc]
            )
        numbers["value only"] = side_by_side(
            bench, "read value only", lambda kind: bench.read(kind, "plain", value_only=True), PROJECTION_BAR
        )
        numbers["write"] = side_by_side(
            bench, "write", lambda kind: bench.fill(kind, f"written-by-{kind}", 100), WRITE_BAR
        )
        numbers["trigger ms"] = triggers(bench)
        spark.stop()
    return numbers


def triggers(bench: Bench) -> dict[str, float]:
    """Milliseconds a trigger of a few rows takes, in each connector."""
    medians = {}
    for kind in ("ottla", "kafka"):
        stream = bench.spark.readStream.format(kind).option("kafka.bootstrap.servers", bench.servers)
        stream = stream.option("subscribe", "plain").option("startingOffsets", "earliest")
        stream = stream.option("maxOffsetsPerTrigger", str(max(bench.rows // 20, 1))).load()
        with tempfile.TemporaryDirectory(prefix="ottla-bench-") as checkpoint:
            query = stream.writeStream.format("noop").option("checkpointLocation", checkpoint)
            started = query.trigger(availableNow=True).start()
            started.awaitTermination()
            times = sorted(
                p["durationMs"]["triggerExecution"] for p in started.recentProgress if p["numInputRows"]
            )
        medians[kind] = float(times[len(times) // 2])
        print(f"trigger of {max(bench.rows // 20, 1)} rows      {kind:<8} {medians[kind]:.0f} ms (median)")
    return medians


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--rows", type=int, default=4_000_000)
    arguments.add_argument("--no-history", action="store_true")
    given = arguments.parse_args()
    numbers = run(given.rows)
    if not given.no_history:
        record("spark", numbers)


if __name__ == "__main__":
    main()
