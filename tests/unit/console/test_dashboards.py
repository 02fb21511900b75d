"""The dashboard and the alert rules ask only for metrics that brokers or the console show."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest

from ottla.broker.observed.gauges import METRICS
from ottla.console.pages.metrics import metrics_text
from ottla.console.read.groups import Groups
from ottla.console.read.world import World
from support.client.pictures import a_picture

OPERATING = Path(__file__).resolve().parents[3] / "docs" / "operating"
NAMED = re.compile(r"\b(?:kafka|ottla)_\w+")
OF_A_HISTOGRAM = ("_bucket", "_sum", "_count")


def shown_by_brokers() -> set[str]:
    histograms = [metric.name for metric in METRICS if metric.kind == "histogram"]
    return {metric.name for metric in METRICS} | {
        f"{name}{end}" for name in histograms for end in OF_A_HISTOGRAM
    }


def shown_by_the_console() -> set[str]:
    async def told() -> str:
        world = World()
        world.saw(a_picture({}))
        return metrics_text(world, Groups(world))

    return set(re.findall(r"^# TYPE (\w+)", asyncio.run(told()), re.MULTILINE))


@pytest.mark.parametrize("name", ["grafana.json", "alerts.yml"])
def test_every_metric_named_is_shown(name: str) -> None:
    named = set(NAMED.findall((OPERATING / name).read_text(encoding="utf-8")))

    assert len(named) > 10
    assert named - shown_by_brokers() - shown_by_the_console() == set()


def test_the_page_lists_every_rule() -> None:
    rules = re.findall(r"- alert: (\w+)", (OPERATING / "alerts.yml").read_text(encoding="utf-8"))
    listed = re.findall(r"`((?:Kafka|Ottla)\w+)`", (OPERATING / "metrics.md").read_text(encoding="utf-8"))

    assert sorted(listed) == sorted(rules)


def test_no_two_panels_share_a_number_or_a_place() -> None:
    panels = json.loads((OPERATING / "grafana.json").read_text(encoding="utf-8"))["panels"]
    places = [
        (x, y)
        for grid in (panel["gridPos"] for panel in panels)
        for x in range(grid["x"], grid["x"] + grid["w"])
        for y in range(grid["y"], grid["y"] + grid["h"])
    ]

    assert len({panel["id"] for panel in panels}) == len(panels)
    assert len(set(places)) == len(places)
    assert max(x for x, _ in places) < 24
