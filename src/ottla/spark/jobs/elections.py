"""elections: the controller's decisions as numbers and as a picture.

Reads the topic ``__ottla_decisions``: elections by rule, time without a leader, changes of the ISR, and how
many partitions each broker led over time.
"""

import html
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, Row, SparkSession, Window
from pyspark.sql import functions as F

from ottla.model.internal_topics import DECISIONS_TOPIC
from ottla.spark.errors import SparkRefused
from ottla.spark.jobs.shared.cluster import find_target
from ottla.spark.jobs.shared.report import Progress, Report, Table
from ottla.spark.runtime.checkpoint import check_file

SHOWN_MAX = 20
_STATE = "struct<leader:int,leader_epoch:int,isr:array<int>>"
_DECISION = (
    f"kind string, partition string, rule string, before {_STATE}, after {_STATE}, cause string,"
    " controller int, controller_epoch int, time_ms long"
)
_NO_LEADER = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectionsOptions:
    """``picture``: an HTML file that is written."""

    bootstrap_servers: str
    picture: str | None = None


def check(options: ElectionsOptions) -> None:
    """Refuse what can be seen to be wrong without Spark."""
    if find_target(DECISIONS_TOPIC, options.bootstrap_servers) is None:
        raise SparkRefused(
            f"the cluster has no topic {DECISIONS_TOPIC},"
            " in which Ottla's controller writes down what it decides",
            "ask a cluster of Ottla's, after its first topic was made",
        )
    if options.picture is not None:
        check_file("picture", options.picture)


def run(spark: SparkSession, options: ElectionsOptions, progress: Progress) -> Report:
    """What the controller decided, as far back as the topic reaches."""
    records = (
        spark.read.format("ottla")
        .option("kafka.bootstrap.servers", options.bootstrap_servers)
        .option("subscribe", DECISIONS_TOPIC)
        .load()
    )
    decisions = (
        records.select("offset", F.from_json(F.col("value").cast("string"), _DECISION).alias("d"))
        .select("offset", "d.*")
        .where("kind = 'decision'")
        .persist()
    )
    progress.tell(f"{decisions.count()} decisions")
    rules = decisions.groupBy("rule").count().orderBy(F.desc("count")).collect()
    offline = without_leader(decisions).limit(SHOWN_MAX).collect()
    churn = isr_changes(decisions).limit(SHOWN_MAX).collect()
    if options.picture is not None:
        steps = leads(decisions).collect()
        Path(options.picture).write_text(draw(steps), encoding="utf-8")
        progress.tell(f"picture in {options.picture}")
    decisions.unpersist()
    return Report(
        f"{sum(row['count'] for row in rules)} decisions",
        [
            Table("by rule", ("rule", "decisions"), [tuple(row) for row in rules]),
            Table("without a leader", ("partition", "times", "total ms"), [tuple(row) for row in offline]),
            Table("changes of the ISR", ("partition", "changes"), [tuple(row) for row in churn]),
        ],
    )


def without_leader(decisions: DataFrame) -> DataFrame:
    """How often and how long each partition had no leader; a time that has not ended is not counted."""
    in_order = Window.partitionBy("partition").orderBy("offset")
    spans = decisions.withColumn("until_ms", F.lead("time_ms").over(in_order))
    return (
        spans.where((F.col("after.leader") == _NO_LEADER) & F.col("until_ms").isNotNull())
        .groupBy("partition")
        .agg(F.count("*").alias("times"), F.sum(F.col("until_ms") - F.col("time_ms")).alias("total_ms"))
        .orderBy(F.desc("total_ms"))
    )


def isr_changes(decisions: DataFrame) -> DataFrame:
    """How often each partition's ISR became another."""
    changed = decisions.where(
        F.col("before").isNotNull() & (F.array_sort("before.isr") != F.array_sort("after.isr"))
    )
    return changed.groupBy("partition").agg(F.count("*").alias("changes")).orderBy(F.desc("changes"))


def leads(decisions: DataFrame) -> DataFrame:
    """Each decision's effect on the number of partitions that a broker leads."""
    gained = decisions.select("time_ms", F.col("after.leader").alias("broker"), F.lit(1).alias("change"))
    lost = decisions.select("time_ms", F.col("before.leader").alias("broker"), F.lit(-1).alias("change"))
    changes = (
        gained.union(lost)
        .where("broker >= 0")
        .groupBy("time_ms", "broker")
        .agg(F.sum("change").alias("change"))
    )
    running = Window.partitionBy("broker").orderBy("time_ms")
    return changes.withColumn("leads", F.sum("change").over(running)).orderBy("time_ms")


def draw(steps: list[Row]) -> str:
    """Partitions led by each broker over time, as an HTML page with one SVG."""
    width, height, colours = 900, 320, ("#0b6", "#06b", "#b60", "#b06", "#60b", "#6b0")
    times = [row["time_ms"] for row in steps] or [0]
    first, span = min(times), max(max(times) - min(times), 1)
    top = max([row["leads"] for row in steps] + [1])
    lines, labels = [], []
    for n, broker in enumerate(sorted({row["broker"] for row in steps})):
        colour = colours[n % len(colours)]
        points: list[str] = []
        y = float(height)
        for row in steps:
            if row["broker"] == broker:
                x = (row["time_ms"] - first) / span * width
                points.append(f"{x:.1f},{y:.1f}")
                y = height - row["leads"] / top * height
                points.append(f"{x:.1f},{y:.1f}")
        points.append(f"{width},{y:.1f}")
        lines.append(
            f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="{" ".join(points)}"/>'
        )
        labels.append(f'<span style="color:{colour}">broker {html.escape(str(broker))}</span>')
    return (
        "<!doctype html><meta charset=utf-8><title>Leaders over time</title>"
        f"<h1>Partitions led, over {span / 1000:.0f} s (at most {top})</h1><p>{' '.join(labels)}</p>"
        f'<svg viewBox="-5 -5 {width + 10} {height + 10}" width="100%">{"".join(lines)}</svg>'
    )
