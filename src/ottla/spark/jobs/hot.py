"""hot: which partitions and which keys carry the bytes, and when.

Bytes are those of keys and values. ``--to`` writes those of each partition to a file, weights for plan.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ottla.spark.jobs.aggregate import check_span
from ottla.spark.jobs.shared.cluster import check_sources
from ottla.spark.jobs.shared.report import Progress, Report, Table
from ottla.spark.jobs.shared.streams import COMMITTED
from ottla.spark.options.read import read_options
from ottla.spark.runtime.checkpoint import check_file

SHOWN_MAX = 20
KEY_SHOWN = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class HotOptions:
    """``window``: how long a span of time is; ``file``: where the partitions' bytes go."""

    bootstrap_servers: str
    topics: str
    starting_offsets: str = "earliest"
    window: str = "10 minutes"
    file: str | None = None
    kafka: Mapping[str, str] = field(default_factory=dict)

    def asked(self) -> dict[str, str]:
        """The options of the read."""
        return {
            **COMMITTED,
            **self.kafka,
            "kafka.bootstrap.servers": self.bootstrap_servers,
            "subscribe": self.topics,
            "startingOffsets": self.starting_offsets,
        }


def check(options: HotOptions) -> None:
    """Refuse what can be seen to be wrong without Spark."""
    read_options(options.asked(), is_stream=False)
    check_span("window", options.window, is_of_windows=True)
    check_sources("topics", options.topics, options.bootstrap_servers)
    if options.file is not None:
        check_file("to", options.file)


def run(spark: SparkSession, options: HotOptions, progress: Progress) -> Report:
    """Sum up all records from the starting offsets on."""
    rows = sized(spark.read.format("ottla").options(**options.asked()).load())
    spans = (
        rows.groupBy("topic", "partition", F.window("timestamp", options.window).alias("span"))
        .agg(F.count("*").alias("records"), F.sum("bytes").alias("bytes"))
        .select("topic", "partition", "span.start", "records", "bytes")
        .collect()
    )
    progress.tell(f"{sum(row['records'] for row in spans)} records are summed up by time; now by key")
    keys = by_key(rows).limit(SHOWN_MAX).collect()
    total = sum(row["bytes"] for row in spans)
    if options.file is not None:
        Path(options.file).write_text(weights(spans), encoding="utf-8")
        progress.tell(f"the partitions' bytes are in {options.file}")
    columns = ("topic", "partition", "records", "bytes", "share", "most in", "bytes then")
    hottest = [
        (
            row["topic"],
            row["partition"],
            _readable(row["key"]),
            row["records"],
            row["bytes"],
            _share(row["bytes"], total),
        )
        for row in keys
    ]
    return Report(
        f"{total} bytes in {len({(row['topic'], row['partition']) for row in spans})} partitions",
        [
            Table("partitions", columns, by_partition(spans)[:SHOWN_MAX]),
            Table("keys", ("topic", "partition", "key", "records", "bytes", "share"), list(hottest)),
        ],
    )


def sized(rows: DataFrame) -> DataFrame:
    """The records with their bytes, without their values."""
    length = F.coalesce(F.length("key"), F.lit(0)) + F.coalesce(F.length("value"), F.lit(0))
    return rows.select("topic", "partition", "timestamp", "key", length.cast("long").alias("bytes"))


def by_key(rows: DataFrame) -> DataFrame:
    """The keys with the most bytes first; records without a key are nobody's."""
    sums = rows.where(F.col("key").isNotNull()).groupBy("topic", "partition", "key")
    return sums.agg(F.count("*").alias("records"), F.sum("bytes").alias("bytes")).orderBy(
        F.desc("bytes"), "key"
    )


def by_partition(spans: Iterable[Any]) -> list[Sequence[object]]:
    """The largest first, each with its share and its busiest span of time."""
    found: dict[tuple[str, int], list[Any]] = {}
    for row in spans:
        found.setdefault((row["topic"], row["partition"]), []).append(row)
    bytes_ = {partition: sum(row["bytes"] for row in rows) for partition, rows in found.items()}
    total, shown = sum(bytes_.values()), []
    for partition in sorted(found, key=lambda each: (-bytes_[each], each)):
        rows = found[partition]
        most = max(rows, key=lambda row: int(row["bytes"]))
        records, share = sum(row["records"] for row in rows), _share(bytes_[partition], total)
        shown.append((*partition, records, bytes_[partition], share, most["start"], most["bytes"]))
    return [*shown]


def weights(spans: Iterable[Any]) -> str:
    """Bytes by topic and partition as JSON."""
    found: dict[str, dict[str, int]] = {}
    for row in spans:
        partitions = found.setdefault(row["topic"], {})
        number = str(row["partition"])
        partitions[number] = partitions.get(number, 0) + row["bytes"]
    return json.dumps(found, indent=1, sort_keys=True) + "\n"


def _share(part: int, whole: int) -> str:
    return f"{100 * part / max(whole, 1):.0f}%"


def _readable(key: bytes) -> str:
    try:
        text = bytes(key).decode()
    except UnicodeDecodeError:
        text = "0x" + bytes(key).hex()
    return text if len(text) <= KEY_SHOWN else f"{text[:KEY_SHOWN]}..."
