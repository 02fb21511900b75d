"""Ottla's Spark data source beside Spark's own Kafka connector, in one run, on one cluster.

    python bench/spark.py                               # the full size: 4,000,000 rows, some minutes
    python bench/spark.py --rows 20000                  # a quick look
    python bench/spark.py --only plain,projection       # some of the cases

The topics are filled by Spark's own connector, with the Java client's batches. Reads end in Spark's noop
sink, so that only the source is measured. Both are run warm, in turn, and the best of three counts. Triggers
of a few rows are measured beside a Python source that makes the same rows out of nothing.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parent))
# Spark's workers need the empty source.
os.environ["PYTHONPATH"] = os.pathsep.join(
    [str(Path(__file__).resolve().parent), *filter(None, [os.environ.get("PYTHONPATH")])]
)

from _empty_source import EmptySource
from bars import SPARK, Bar
from history import record

from ottla.client.admin.topics import a_topic, create_topics
from ottla.client.blocking.client import Client
from ottla.launch.cluster import Cluster
from ottla.spark.session import spark_session
from support.spark.connector import connector_jars

REPEATS = 3
PARTITIONS = 4
TRIGGERS = 25
ROWS_PER_TRIGGER = 8

VALUE_100 = "repeat('x', 100)"
VALUE_1K = "repeat('x', 1024)"
VALUE_TEXT = (
    'format_string(\'{"order":%08d,"customer":"%s","state":"shipped","price":%06d}\', id,'
    " substr(md5(cast(id AS string)), 1, 28), id % 100000)"
)
HEADERS = "array(struct('h' AS key, cast('v' AS binary) AS value))"
READS: dict[str, dict[str, Any]] = {
    "plain": {"value": VALUE_100},
    "large": {"value": VALUE_1K, "rows_share": 0.25},
    "lz4": {"value": VALUE_TEXT, "codec": "lz4"},
    "headers": {"value": VALUE_100, "headers": True},
}
CASES = (*READS, "projection", "write", "triggers")


class Bench:
    """Topics filled by Spark, and both connectors over them."""

    def __init__(self, spark: Any, servers: str, rows: int) -> None:
        self.spark = spark
        self.servers = servers
        self.rows = rows

    def make_topics(self, names: list[str]) -> None:
        with Client(self.servers) as client:
            topics = [a_topic(name, partitions=PARTITIONS, replication_factor=1) for name in names]
            client.run(create_topics, topics)

    def fill(
        self,
        kind: str,
        topic: str,
        *,
        value: str = VALUE_100,
        rows_share: float = 1.0,
        codec: str = "none",
        headers: bool = False,
    ) -> None:
        """Write rows of a shape."""
        columns = ["lpad(cast(id AS string), 8, '0') AS key", f"{value} AS value"]
        if headers:
            columns.append(f"{HEADERS} AS headers")
        rows = self.spark.range(0, int(self.rows * rows_share), 1, 2).selectExpr(*columns)
        writer = rows.write.format(kind).option("kafka.bootstrap.servers", self.servers)
        writer = writer.option("topic", topic).option("includeHeaders", str(headers).lower())
        writer.option("kafka.compression.type", codec).mode("append").save()

    def read(self, kind: str, topic: str, *, headers: bool = False, value_only: bool = False) -> None:
        """Read a topic into nothing."""
        reader = self.spark.read.format(kind).option("kafka.bootstrap.servers", self.servers)
        reader = reader.option("subscribe", topic).option("includeHeaders", str(headers).lower())
        if value_only and kind == "ottla":
            reader = reader.schema("value BINARY")
        rows = reader.load()
        rows = rows.select("value") if value_only else rows
        rows.write.format("noop").mode("overwrite").save()

    def side_by_side(
        self, name: str, action: Callable[[str], None], bar: Bar, rows_share: float = 1.0
    ) -> dict[str, float]:
        """Rows per second of both, in turn; the first run of each is thrown away."""
        best = {"ottla": 0.0, "kafka": 0.0}
        for turn in range(REPEATS + 1):
            for kind in best:
                began = time.perf_counter()
                action(kind)
                rate = self.rows * rows_share / (time.perf_counter() - began)
                best[kind] = max(best[kind], rate) if turn else 0.0
        ours, theirs = best["ottla"], best["kafka"]
        ratio = ours / theirs
        print(
            f"{name:<18} ottla {ours / 1e6:6.3f}  official {theirs / 1e6:6.3f} M rows/s  {ratio:5.2f} x"
            f"  (bar {bar.number} x: {'met' if bar.is_met(ratio) else 'NOT met'})",
            flush=True,
        )
        return {
            "ottla_rows_per_s": round(ours),
            "official_rows_per_s": round(theirs),
            "ratio": round(ratio, 2),
        }

    def trigger_ms(self, kind: str) -> float:
        """The median time of a trigger of a few rows."""
        stream = self.spark.readStream.format(kind)
        if kind != EmptySource.name():
            stream = stream.option("kafka.bootstrap.servers", self.servers).option("subscribe", "few")
            stream = stream.option("startingOffsets", "earliest")
            stream = stream.option("maxOffsetsPerTrigger", str(ROWS_PER_TRIGGER))
        with tempfile.TemporaryDirectory(prefix="ottla-bench-") as checkpoint:
            query = stream.load().writeStream.format("noop").option("checkpointLocation", checkpoint)
            started = query.trigger(availableNow=True).start()
            started.awaitTermination()
            times = sorted(
                p["durationMs"]["triggerExecution"] for p in started.recentProgress if p["numInputRows"]
            )
        return float(times[len(times) // 2])

    def triggers(self) -> dict[str, float]:
        """Milliseconds a trigger takes, in each connector and in the empty source; best of some medians."""
        self.make_topics(["few"])
        with Client(self.servers) as client:
            producer = client.producer()
            for n in range(TRIGGERS * ROWS_PER_TRIGGER):
                producer.send("few", b"x" * 100, partition=n % PARTITIONS)
            producer.flush()
        self.spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", str(2 * TRIGGERS))
        self.spark.dataSource.register(EmptySource)
        medians: dict[str, float] = {}
        for _ in range(REPEATS):
            for kind in ("ottla", "kafka", EmptySource.name()):
                medians[kind] = min(medians.get(kind, float("inf")), self.trigger_ms(kind))
        bar = SPARK["trigger_ms"]
        verdict = "met" if bar.is_met(medians["ottla"], medians[EmptySource.name()]) else "NOT met"
        listed = "  ".join(f"{kind} {ms:.0f} ms" for kind, ms in medians.items())
        print(f"trigger of {ROWS_PER_TRIGGER} rows  {listed}  (bar: empty + {bar.number:.0f}, {verdict})")
        return medians


def run(rows: int, cases: Sequence[str], keep: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """Measure the cases; each is kept as soon as it is measured, whatever becomes of the next."""
    jars = ",".join(map(str, connector_jars()))
    settings = {"spark.jars": jars, "spark.driver.memory": "4g"}
    numbers: dict[str, Any] = {"rows": rows}
    with Cluster(1) as cluster:
        spark = spark_session("local[2]", app_name="bench", settings=settings)
        bench = Bench(spark, cluster.bootstrap_servers, rows)
        needed = [name for name in READS if name in cases or (name == "plain" and "projection" in cases)]
        bench.make_topics([*needed, "by-ottla", "by-kafka"])
        for topic in needed:
            bench.fill("kafka", topic, **READS[topic])
        for topic in (name for name in READS if name in cases):
            shape = READS[topic]

            def read(kind: str, topic: str = topic, headers: bool = bool(shape.get("headers"))) -> None:
                bench.read(kind, topic, headers=headers)

            share = shape.get("rows_share", 1.0)
            numbers[topic] = bench.side_by_side(f"read {topic}", read, SPARK[topic], share)
            keep({"rows": int(rows * share), topic: numbers[topic]})
        if "projection" in cases:
            numbers["projection"] = bench.side_by_side(
                "read value only",
                lambda kind: bench.read(kind, "plain", value_only=True),
                SPARK["projection"],
            )
            keep({"rows": rows, "projection": numbers["projection"]})
        if "write" in cases:
            numbers["write"] = bench.side_by_side(
                "write", lambda kind: bench.fill(kind, f"by-{kind}"), SPARK["write"]
            )
            keep({"rows": rows, "write": numbers["write"]})
        if "triggers" in cases:
            numbers["trigger_ms"] = bench.triggers()
            keep({"rows": ROWS_PER_TRIGGER, "trigger_ms": numbers["trigger_ms"]})
        spark.stop()
    return numbers


def missed(numbers: dict[str, Any]) -> list[str]:
    """The cases that stayed below their bar."""
    compared = (*READS, "projection", "write")
    below = [name for name in compared if name in numbers and not SPARK[name].is_met(numbers[name]["ratio"])]
    medians = numbers.get("trigger_ms")
    if medians and not SPARK["trigger_ms"].is_met(medians["ottla"], medians[EmptySource.name()]):
        below.append("triggers")
    return below


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--rows", type=int, default=4_000_000)
    arguments.add_argument("--only", default=",".join(CASES), help=f"some of {', '.join(CASES)}")
    arguments.add_argument("--no-history", action="store_true")
    given = arguments.parse_args()
    cases = given.only.split(",")
    if unknown := set(cases) - set(CASES):
        arguments.error(f"there is no case {', '.join(sorted(unknown))}; there are {', '.join(CASES)}")

    def keep(measured: dict[str, Any]) -> None:
        if not given.no_history:
            record("spark", measured)

    numbers = run(given.rows, cases, keep)
    return 1 if missed(numbers) else 0


if __name__ == "__main__":
    sys.exit(main())
