"""The tables of ``docs/proof.md``: the newest figures in ``bench/history.jsonl``, beside their bars."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
HISTORY = ROOT / "bench" / "history.jsonl"
sys.path.insert(0, str(ROOT / "bench"))

import bars  # noqa: E402
from bars import Bar  # noqa: E402


class Row(NamedTuple):
    """One figure: where there is no peer, ours alone."""

    what: str
    ours: float
    peer: float | None
    bar: Bar | None
    commit: str


def tables() -> Iterator[str]:
    """Every benchmark that has a run in the history."""
    runs = [json.loads(line) for line in HISTORY.read_text(encoding="utf-8").splitlines()]
    for title, command, peer, rows in (
        (
            "Brokers, three of each kind",
            "make bench NAME=broker",
            "Apache 3.9.1",
            [*sides(runs, "broker", bars.BROKER)],
        ),
        ("Control plane, 10,000 partitions", CONTROLLER_COMMAND, "Apache 3.9.1", [*controller_rows(runs)]),
        ("Death to acks=all, s", "make bench NAME=crash", "Apache 3.9.1", [*crash_rows(runs)]),
        ("Groups", "make bench NAME=groups", "Apache 3.9.1", [*group_rows(runs)]),
        ("ZooKeeper client", "python bench/zookeeper.py", "kazoo", [*zookeeper_rows(runs)]),
        ("Spark source", "make bench NAME=spark", "Spark's connector", [*spark_rows(runs)]),
        ("Log and codec", "make bench NAME=storage", "", [*storage_rows(runs), *codec_rows(runs)]),
        ("Built-in keeper", "make bench NAME=keeper", "Apache 3.9.5", [*keeper_rows(runs)]),
        ("From nothing", "make bench NAME=start", "on Apache's ZooKeeper", [*start_rows(runs)]),
    ):
        if not rows:
            continue  # It was never run on a machine worth a figure.
        commits = ", ".join(dict.fromkeys(row.commit for row in rows))
        yield f"\n### {title}: `{command}`, {commits}\n"
        yield f"| What | Ottla | {peer} | Ratio | Bar |\n|---|---|---|---|---|"
        yield from map(line, rows)


CONTROLLER_COMMAND = "python bench/controller.py --rows life znodes start"


def line(row: Row) -> str:
    """A row of a table."""
    ratio = "" if row.peer is None else f"{row.ours / row.peer:.2f}"
    peer = "" if row.peer is None else number(row.peer)
    cells = (row.what, number(row.ours), peer, ratio, bar_text(row))
    return f"| {' | '.join(cells)} |".replace("|  |", "| |").replace("|  |", "| |")


def bar_text(row: Row) -> str:
    """The bar in the reader's signs, and whether it is missed."""
    if row.bar is None:
        return ""
    sign = "≥" if row.bar.sign == ">=" else "≤"
    of = {"ratio": "", "ours": "", "excess": f"{number(row.peer or 0)} + "}[row.bar.of]
    unit = " alone" if row.bar.of == "ours" and row.peer is not None else ""
    verdict = "" if row.bar.is_met(row.ours, row.peer or 1.0) else ", **missed**"
    return f"{sign} {of}{number(row.bar.number)}{unit}{verdict}"


def number(value: float) -> str:
    """Three figures that count."""
    return (
        f"{value:,.0f}"
        if value >= 100 or value == round(value)
        else f"{value:.3g}"
        if value >= 1
        else f"{value:.2g}"
    )


def newest(runs: list[dict[str, Any]], benchmark: str, key: str | None = None) -> tuple[Any, str]:
    """The newest run's numbers and commit; with a key, of the newest run that measured it."""
    for run in reversed(runs):
        if run["benchmark"] == benchmark and (key is None or key in run["numbers"]):
            return run["numbers"], run["commit"]
    raise SystemExit(f"bench/history.jsonl has no run of {benchmark}")


def sides(runs: list[dict[str, Any]], benchmark: str, held: dict[str, Bar]) -> Iterator[Row]:
    """A benchmark that keeps both sides of every measure."""
    numbers, commit = newest(runs, benchmark)
    for what, by in numbers.items():
        yield Row(what.replace(", us", ", µs"), by["ottla"], by["apache"], held.get(what), commit)


def controller_rows(runs: list[dict[str, Any]]) -> Iterator[Row]:
    """A topic's life at ten thousand partitions, failover over many znodes, start; seconds."""
    life = "controller 10000 partitions"
    names = newest(runs, life)[0]
    held = {name: bars.CONTROLLER_MEMORY_MB if "MB" in name else bars.CONTROLLER_LIFE for name in names}
    for row in sides(runs, life, held):
        yield row._replace(what=row.what if "MB" in row.what else f"{row.what}, s")
    for row in sides(runs, "controller 100000 znodes", {"controller failover": bars.CONTROLLER_ZNODES}):
        yield row._replace(what="failover over 100,000 partitions in ZooKeeper, s")
    for row in sides(runs, "controller start", {"start to first record": bars.CONTROLLER_START}):
        yield row._replace(what="start of three brokers to the first record, s")


def crash_rows(runs: list[dict[str, Any]]) -> Iterator[Row]:
    """Seconds after kill -9 until acks=all is answered; with Kafka's own controllers in brackets."""
    numbers, commit = newest(runs, "crash")
    for death, what in (
        ("leader", "a leader, median"),
        ("controller", "the controller"),
        ("both", "both in one"),
    ):
        ours, apache, kraft = (numbers[side][death] for side in ("ottla", "apache", "kraft"))
        told = f"{what} (Kafka 4.3.1: {number(kraft['median'])})"
        yield Row(told, ours["median"], apache["median"], bars.CRASH["median"], commit)
        if death == "both":
            yield Row("the same, worst", ours["worst"], apache["worst"], bars.CRASH["worst"], commit)


def group_rows(runs: list[dict[str, Any]]) -> Iterator[Row]:
    """Fifty members, and a million offsets."""
    numbers, commit = newest(runs, "groups")
    for what, ours in numbers["ottla"].items():
        yield Row(what, ours, numbers["apache"][what], bars.GROUPS.get(what), commit)


def zookeeper_rows(runs: list[dict[str, Any]]) -> Iterator[Row]:
    """Reads and writes as nodes a second, and one get."""
    numbers, commit = newest(runs, "zookeeper")
    ours, kazoo, nodes = numbers["ottla"], numbers["kazoo"], numbers["nodes"]
    for what, mine, theirs in (
        ("reads, nodes/s", "reads_s", "reads_s"),
        ("fenced writes beside kazoo's unfenced, nodes/s", "writes_s", "writes_s"),
        ("fenced writes beside kazoo's fenced, nodes/s", "writes_s", "fenced_writes_s"),
    ):
        yield Row(what, nodes / ours[mine], nodes / kazoo[theirs], bars.ZOOKEEPER[theirs], commit)
    yield Row("one get, µs", ours["get_us"], kazoo["get_us"], bars.ZOOKEEPER["get_us"], commit)


def keeper_rows(runs: list[dict[str, Any]]) -> Iterator[Row]:
    """The built-in keeper beside Apache's server."""
    if not any(run["benchmark"] == "keeper" for run in runs):
        return
    numbers, commit = newest(runs, "keeper")
    for what, by in numbers["rows"].items():
        is_control = what.startswith("control: ") and "MB" not in what
        bar = bars.KEEPER["control" if is_control else what] if is_control or what in bars.KEEPER else None
        yield Row(what.replace(", us", ", µs"), by["ottla"], by["apache"], bar, commit)


def start_rows(runs: list[dict[str, Any]]) -> Iterator[Row]:
    """``ottla up`` and the fixture, on either ZooKeeper."""
    if not any(run["benchmark"] == "start" for run in runs):
        return
    numbers, commit = newest(runs, "start")
    for what, ours in numbers["keeper"].items():
        yield Row(what, ours, numbers["apache"][what], bars.START.get(what), commit)


def spark_rows(runs: list[dict[str, Any]]) -> Iterator[Row]:
    """Million rows a second, and a trigger."""
    for key, what in (
        ("plain", "read all columns, M rows/s"),
        ("large", "the same, values of 1 KiB"),
        ("lz4", "the same, lz4"),
        ("headers", "the same, with headers"),
        ("projection", "read the value alone"),
        ("write", "write key and value"),
    ):
        numbers, commit = newest(runs, "spark", key)
        ours, peer = numbers[key]["ottla_rows_per_s"] / 1e6, numbers[key]["official_rows_per_s"] / 1e6
        yield Row(what, ours, peer, bars.SPARK[key], commit)
    numbers, commit = newest(runs, "spark", "trigger_ms")
    times = numbers["trigger_ms"]
    yield Row(
        "a trigger, ms; beside an empty Python source",
        times["ottla"],
        times["empty"],
        bars.SPARK["trigger_ms"],
        commit,
    )


def storage_rows(runs: list[dict[str, Any]]) -> Iterator[Row]:
    """The log beside bare system calls."""
    numbers, commit = newest(runs, "storage")
    for key, what in (
        ("append 1 MiB", "append 1 MiB, times a bare `os.write`"),
        ("append 16 KiB", "append 16 KiB, the same"),
        ("read, 1 MiB batches", "read 1 MiB batches, times a bare `os.pread`"),
        ("read, 16 KiB batches", "read 16 KiB batches, the same"),
        ("open seconds", "open 2,000 clean partitions, s"),
        ("idle bytes", "memory of an idle partition, bytes"),
        ("10000 logs, open", "open 10,000 logs, s of processor"),
    ):
        yield Row(what, numbers[key], None, bars.STORAGE[key], commit)


def codec_rows(runs: list[dict[str, Any]]) -> Iterator[Row]:
    """The worst of the messages, beside kio."""
    numbers, commit = newest(runs, "codec")
    for key, what, worst in (
        ("encode_times_faster", "encode, times kio's speed (`NAME=codec`)", min),
        ("decode_times_slower", "decode, times kio's time", max),
    ):
        figures = [by[key] for by in numbers.values()]
        yield Row(what, worst(figures), None, bars.CODEC[key], commit)
