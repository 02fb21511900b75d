"""``describe`` and ``explain`` through a scripted history: birth, a crash, the way back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ottla.launch.cluster import Cluster
from support.commands import Run
from support.waiting import wait_until

pytestmark = [pytest.mark.java, pytest.mark.slow]


def explained(done: Run, partition: str = "told-0") -> dict[str, Any]:
    story: dict[str, Any] = json.loads(done("explain", partition, "--json").stdout)
    return story


def rules(story: dict[str, Any]) -> list[str]:
    """The rules by which the leader changed, oldest first."""
    return [
        row["rule"]
        for row in story["history"]
        if row["kind"] == "decision" and (row["before"] or {}).get("leader") != row["after"]["leader"]
    ]


def test_a_crash_and_the_way_back_are_told_with_rule_and_cause(cluster: Cluster, done: Run) -> None:
    done("topics", "--create", "--topic", "told", "--replica-assignment", "1:2")
    wait_until(lambda: explained(done)["history"], "the birth is told")

    cluster.brokers[1].kill()
    wait_until(lambda: explained(done)["leader"] == 2, "broker 2 leads")
    wait_until(lambda: len(rules(explained(done))) == 2, "the crash is told")
    dead = explained(done)
    words = done("explain", "told-0").stdout
    screen = json.loads(done("describe", "--json").stdout)

    cluster.start_broker(1)
    wait_until(lambda: explained(done)["isr"] == [2, 1], "broker 1 follows again")
    done("leader-election", "--election-type", "preferred", "--topic", "told", "--partition", "0")
    wait_until(lambda: len(rules(explained(done))) == 3, "the preferred election is told")
    back = explained(done)

    assert dead["what_if"]["1"] == "is not alive already"
    assert dead["what_if"]["2"].startswith("the partition would be offline")
    assert dead["preferred"] == "the preferred leader 1 is not alive"
    assert dead["is_told"]
    assert "rule: leader offline: the first replica that is online and in sync" in words
    assert "candidates: 1 offline, in sync; 2 online, in sync" in words
    assert [row["address"] is None for row in screen["brokers"]] == [False, True, False]
    assert "told-0" in screen["troubles"]
    assert rules(back) == ["new partition", "offline partition", "preferred replica"]
    assert (back["leader"], back["is_preferred"]) == (1, True)
    assert back["what_if"]["1"] == "broker 2 would lead, in sync 2"


def test_a_partition_that_is_not_there_is_one_sentence(ottla: Run) -> None:
    missing = ottla("explain", "nowhere-0")
    wrong = ottla("explain", "nowhere")

    assert (missing.exit_code, wrong.exit_code) == (1, 2)
    assert missing.stderr == "ottla: there is no partition nowhere-0; see `ottla topics --describe`\n"


def test_watch_prints_the_screen_once_into_a_pipe(done: Run) -> None:
    ran = done("watch", "--times", "2", "--every", "0.2")

    assert ran.lines[0].startswith("cluster ")
    assert sum(line.startswith("BROKER") for line in ran.lines) == 1
