"""availability: how long partitions had no leader, or fewer replicas in sync than writers need, and why.

Reads ``__ottla_decisions``, which fits into memory: it needs no Spark.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ottla.client.admin.configs import ResourceType, describe_configs
from ottla.client.blocking.client import Client
from ottla.client.errors import ClientError
from ottla.spark.jobs.shared.report import Progress, Report, Table
from ottla.spark.options.kafka_settings import BOOTSTRAP, kafka_settings
from ottla.spark.read.offsets import settled_topics, unreachable
from ottla.spark.read.receipts import decisions_of

NO_LEADER, BELOW_MIN_ISR = "without a leader", "below min ISR"
SHOWN_MAX = 20
MINUTE_MS = 60_000
MIN_ISR = "min.insync.replicas"


@dataclass(frozen=True, slots=True, kw_only=True)
class AvailabilityOptions:
    """``topics``: separated by commas; all if it is not given."""

    bootstrap_servers: str
    topics: str | None = None


@dataclass(frozen=True, slots=True)
class Outage:
    """A partition without a leader, or below min ISR. ``until_ms``: None while it lasts."""

    partition: str
    what: str
    cause: str
    from_ms: int
    until_ms: int | None

    def minutes(self, now_ms: int) -> float:
        return ((now_ms if self.until_ms is None else self.until_ms) - self.from_ms) / MINUTE_MS


def check(options: AvailabilityOptions) -> None:
    """There is nothing to refuse: a cluster that writes no decisions has no outages on record."""


def run(options: AvailabilityOptions, progress: Progress) -> Report:
    """All outages on record of partitions that there are."""
    wanted = None if options.topics is None else [n.strip() for n in options.topics.split(",") if n.strip()]
    kafka = kafka_settings({BOOTSTRAP: options.bootstrap_servers}, is_sink=False)
    with Client(kafka.client) as client:
        try:
            topics = [t for t in client.run(settled_topics, wanted).topics if t.name and not t.error_code]
            names = [(ResourceType.TOPIC, topic.name or "") for topic in topics]
            settings = client.run(describe_configs, names, keys=[MIN_ISR])
            rows = decisions_of(client)
        except ClientError as error:
            raise unreachable(kafka, error) from error
    least = {row.resource_name: int(row.configs[0].value or 1) for row in settings if row.configs}
    needed = {
        f"{topic.name}-{row.partition_index}": least.get(topic.name or "", 1)
        for topic in topics
        for row in topic.partitions
    }
    progress.tell(f"{len(rows)} records of what the cluster decided")
    return told(outages(rows, needed), len(needed), time.time_ns() // 1_000_000)


def outages(rows: Iterable[Mapping[str, Any]], needed: Mapping[str, int]) -> list[Outage]:
    """What the decisions tell of partitions; ``needed``: how many replicas in sync each must have."""
    found: list[Outage] = []
    open_: dict[str, Outage] = {}
    for row in rows:
        name, state = str(row.get("partition")), row.get("after")
        if row.get("kind") != "decision" or name not in needed:
            continue
        if row.get("before") is None:
            open_.pop(name, None)  # The partition is new: what was before it was another's.
        what = None if state is None else _trouble(state, needed[name])
        before = open_.get(name)
        if before is not None and before.what != what:
            found.append(_ended(open_.pop(name), row["time_ms"]))
        if what is not None and name not in open_:
            open_[name] = Outage(name, what, row["cause"], row["time_ms"], None)
    return [*found, *open_.values()]


def told(found: Sequence[Outage], partitions: int, now_ms: int) -> Report:
    """Minutes by cause and by partition; not well while one lasts."""
    lasting = [one for one in found if one.until_ms is None]
    minutes = {
        what: sum(one.minutes(now_ms) for one in found if one.what == what)
        for what in (NO_LEADER, BELOW_MIN_ISR)
    }
    headline = f"{partitions} partitions: " + ", ".join(
        f"{m:.1f} minutes {what}" for what, m in minutes.items()
    )
    if lasting:
        headline += f"; {len(lasting)} outages last"
    columns = ("times", "minutes", "last")
    return Report(
        headline,
        [
            Table("by cause", ("what", "cause", *columns), _summed(found, "cause", now_ms)),
            Table("by partition", ("what", "partition", *columns), _summed(found, "partition", now_ms)),
        ],
        is_well=not lasting,
    )


def _summed(found: Sequence[Outage], by: str, now_ms: int) -> list[Sequence[object]]:
    sums: dict[tuple[str, str], list[Any]] = {}
    for one in found:
        row = sums.setdefault((one.what, getattr(one, by)), [0, 0.0, 0])
        row[0] += 1
        row[1] += one.minutes(now_ms)
        row[2] += one.until_ms is None
    worst = sorted(sums.items(), key=lambda item: -item[1][1])[:SHOWN_MAX]
    return [(*key, times, f"{minutes:.1f}", lasts) for key, (times, minutes, lasts) in worst]


def _trouble(state: Mapping[str, Any], needed: int) -> str | None:
    if state["leader"] < 0:
        return NO_LEADER
    return BELOW_MIN_ISR if len(state["isr"]) < needed else None


def _ended(one: Outage, until_ms: int) -> Outage:
    return Outage(one.partition, one.what, one.cause, one.from_ms, until_ms)
