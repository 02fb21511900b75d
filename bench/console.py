"""The console over a large cluster in name only: processor time a page, bytes of a first visit, memory.

The picture is made up (``--partitions`` with three replicas, ``--groups`` that read ten partitions each), so
that pages are measured and no broker is. Times are processor time of this process, medians of ``--rounds``.
"""

import argparse
import asyncio
import gzip
import json
import resource
import time
from collections.abc import Iterator
from typing import Any

from _sides import median
from bars import CONSOLE
from history import record

from ottla.client.config import ClientConfig
from ottla.console.app import Console
from ottla.console.guard.token import Token
from ottla.console.render import HERE
from ottla.insight.lag import Point, Window, group_lag
from ottla.insight.picture import BrokerSeen, PartitionSeen, Picture, TopicSeen
from ottla.model.ids import TopicPartition
from support.client.asgi import Answered, asked

TOKEN = Token("s" * 32, 8092)
HEADERS = {"Host": "127.0.0.1:8092", "Authorization": f"Bearer {TOKEN.secret}"}
PAGES = {
    "overview": "/",
    "timeline": "/timeline",
    "partitions": "/partitions?q=topic%201",
    "partition": "/partitions/topic-0/0",
    "may it leave": "/brokers/1/leave",
    "balance": "/balance",
    "map": "/replicas",
    "map's cells": "/replicas.bin",
    "groups": "/groups",
    "topics": "/topics",
    "brokers": "/brokers",
    "about": "/about",
}
FIRST_VISIT = ("console.css", "live.js", "icon.svg", "vendor/htmx.min.js")
PARTITIONS_A_TOPIC = 10


class _Nobody:
    """In the place of the looker: the picture is there."""

    def somebody_looks(self) -> None: ...

    async def await_picture(self) -> None: ...


def main() -> None:
    """Measure, print, record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--groups", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--no-record", action="store_true", help="Do not keep the figures.")
    chosen = parser.parse_args()
    figures = asyncio.run(measured(chosen.partitions, chosen.groups, chosen.rounds))
    for name, figure in figures.items():
        bar = CONSOLE.get(name)
        verdict = (
            "" if bar is None else f"   {bar.sign} {bar.number}: {'met' if bar.is_met(figure) else 'MISSED'}"
        )
        print(f"{name:30} {figure:10.1f}{verdict}")
    if not chosen.no_record:
        record("console", {"partitions": chosen.partitions, "groups": chosen.groups, "figures": figures})


async def measured(partitions: int, groups: int, rounds: int) -> dict[str, float]:
    """The figures by name."""
    console = a_console(partitions, groups)
    application = console.application()
    figures: dict[str, float] = {}
    for name, path in PAGES.items():
        took = []
        for _ in range(rounds):
            begun = time.process_time()
            page = await asked(application, path, HEADERS)
            took.append((time.process_time() - begun) * 1000)
            assert page.status == 200, (path, page.status)
        figures[f"{name}, ms"] = median(took)
    page = await asked(application, "/", HEADERS)
    figures["first visit compressed, kB"] = _first_visit_bytes(page) / 1000
    begun = time.process_time()
    console.world.recorded((b"topic-0-0", row) for row in _deaths(partitions))
    figures["a death in the picture, ms"] = (time.process_time() - begun) * 1000
    figures["memory, MB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return figures


def a_console(partitions: int, groups: int) -> Console:
    """A console that has seen the cluster."""
    console = Console(ClientConfig(bootstrap_servers=(("h", 1),)), TOKEN)
    console.looker = _Nobody()  # type: ignore[assignment]
    names = [
        TopicPartition(f"topic-{n // PARTITIONS_A_TOPIC}", n % PARTITIONS_A_TOPIC) for n in range(partitions)
    ]
    rows = {}
    for number, name in enumerate(names):
        replicas = tuple((number + step) % 3 for step in range(3))
        rows[name] = PartitionSeen(name.partition, replicas[0], replicas, replicas, leader_epoch=0)
    brokers = {number: BrokerSeen(number, "127.0.0.1", 9092 + number) for number in range(3)}
    topics = {name.topic: TopicSeen(name.topic, min_isr=2) for name in names}
    console.world.saw(Picture("made-up", 0, 1, brokers, topics, rows))
    console.world.has_history = True
    _fill_groups(console, names, groups)
    return console


def _fill_groups(console: Console, names: list[TopicPartition], groups: int) -> None:
    async def at_once(*, all_partitions: bool = False) -> None: ...

    console.groups.await_round = at_once  # type: ignore[method-assign]
    for group in range(groups):
        windows = {}
        for name in names[group * 10 % len(names) :][:10]:
            window = Window()
            for second in range(4):
                window.take(Point(second * 1000, second * 5, second * 10 + group % 7))
            windows[name] = window
        console.groups.states[f"group-{group}"] = "Stable"
        console.groups.windows[f"group-{group}"] = windows
        console.groups.lags[f"group-{group}"] = group_lag(windows.values())


def _first_visit_bytes(page: Answered) -> int:
    files = [(HERE / "static" / name).read_bytes() for name in FIRST_VISIT]
    return sum(len(gzip.compress(content)) for content in [page.body, *files])


def _deaths(partitions: int) -> Iterator[bytes]:
    """What is recorded when broker 0 dies: an election of each third partition, a smaller ISR of all."""
    for number in range(partitions):
        replicas = [(number + step) % 3 for step in range(3)]
        isr = [broker for broker in replicas if broker != 0]
        rule = "offline partition" if replicas[0] == 0 else "replica lost"
        row: dict[str, Any] = {
            "partition": f"topic-{number // PARTITIONS_A_TOPIC}-{number % PARTITIONS_A_TOPIC}",
            "kind": "decision",
            "rule": rule,
            "before": {"leader": replicas[0], "leader_epoch": 0, "isr": replicas},
            "after": {"leader": isr[0], "leader_epoch": 1, "isr": isr},
            "candidates": [],
            "cause": "broker 0 is gone",
            "controller": 1,
            "controller_epoch": 2,
            "time_ms": 1_000 + number // 10,
        }
        yield json.dumps(row).encode()


if __name__ == "__main__":
    main()
