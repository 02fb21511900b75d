"""``ottla explain`` where both kinds of controller decided: what Apache's did is inferred, and said to be."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from support.clusters.mixed import MixedCluster, mixed_cluster
from support.processes.commands import run_here
from support.running.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.java, pytest.mark.apache]

APACHES = "decided by an Apache controller, inferred from znodes"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, jars: object) -> Iterator[MixedCluster]:
    kinds = {0: "ottla", 1: "apache", 2: "ottla"}
    with mixed_cluster(tmp_path_factory.mktemp("mixed"), kinds) as running:
        yield running


def explain(cluster: MixedCluster, *flags: str) -> str:
    ran = run_here("explain", "told-0", "--bootstrap-server", cluster.bootstrap, *flags)
    assert ran.exit_code == 0, ran.stderr
    return ran.stdout


def decisions(cluster: MixedCluster) -> list[dict[str, Any]]:
    history = json.loads(explain(cluster, "--json"))["history"]
    return [row for row in history if row["kind"] == "decision"]


def told_epoch(cluster: MixedCluster) -> tuple[int, str] | None:
    """The leader epoch, and what is told of it, if that is told."""
    (state,) = cluster.states("told")
    text = explain(cluster)
    return (state["leader_epoch"], text) if f" leader epoch {state['leader_epoch']} " in text else None


def test_what_each_kind_of_controller_decided_is_told_apart(cluster: MixedCluster) -> None:
    cluster.elect_controller(0)
    cluster.create("told", [0, 2])
    wait_until(lambda: decisions(cluster), "the birth is told", 30)
    ours = explain(cluster)

    cluster.elect_controller(1)
    cluster.kill(0)
    wait_until(lambda: cluster.leaders("told") == [2], "Apache's controller elected broker 2", 30)
    # Brokers hear of it one after the other, and the tool may ask any of them. A controller that took office
    # as the broker died may have decided twice.
    epoch, theirs = wait_until(lambda: told_epoch(cluster), lambda: explain(cluster), 30)

    cluster.start_again(0)
    cluster.wait_for_isr("told", 2)
    cluster.elect_controller(2)
    cluster.prefer(("told", 0))
    wait_until(lambda: decisions(cluster)[-1]["rule"] == "preferred replica", "the last election is told", 30)
    both = explain(cluster)

    assert APACHES not in ours
    assert epoch >= 1
    assert f"  why: leader epoch {epoch} {APACHES}" in theirs
    assert "rule: preferred: back to the first replica" in both
    assert APACHES in both.partition("history")[2]
    assert "why: preferred" in both
