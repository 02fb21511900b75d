"""The same commands at Apache's own brokers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.apache import ApacheCluster, apache_cluster
from support.commands import Ran, run_command, run_here
from support.waiting import wait_until

pytestmark = [pytest.mark.apache, pytest.mark.java, pytest.mark.slow]


@pytest.fixture(scope="module")
def apache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheCluster]:
    with apache_cluster(tmp_path_factory.mktemp("apache"), size=2) as running:
        yield running


def led_by(leader: int, done: Callable[..., Ran]) -> list[Any] | None:
    """The topic as it is described, if it has this leader twice in a row."""
    told = [
        json.loads(done("topics", "--describe", "--topic", "foreign", "--output", "json").stdout)
        for _ in range(2)
    ]
    return told[0] if all(each[0]["leader"] == leader for each in told) else None


def test_the_tools_work_at_apaches_brokers(apache: ApacheCluster, tmp_path: Path) -> None:
    def done(command: str, *args: str, stdin: bytes = b"") -> Ran:
        words = (command, "--bootstrap-server", apache.bootstrap, *args)
        ran = run_command(*words, stdin=stdin) if stdin else run_here(*words)
        assert ran.exit_code == 0, f"{command} {args}: {ran.stderr}{ran.stdout}"
        return ran

    plan = tmp_path / "plan.json"
    plan.write_text('{"version":1,"partitions":[{"topic":"foreign","partition":0,"replicas":[2,1]}]}')
    before = tmp_path / "before.json"
    before.write_text('{"partitions": [{"topic": "foreign", "partition": 0, "offset": 1}]}')

    done("topics", "--create", "--topic", "foreign", "--replica-assignment", "1:2")
    done("configs", "--alter", "--topic", "foreign", "--add-config", "retention.ms=7000000")
    done("console-producer", "--topic", "foreign", stdin=b"one\ntwo\nthree\n")
    read = done(
        "console-consumer", "--topic", "foreign", "--from-beginning", "--group", "g", "--max-messages", "3"
    )
    lag = done("consumer-groups", "--describe", "--group", "g", "--output", "csv")
    done("delete-records", "--offset-json-file", str(before))
    done("reassign-partitions", "--execute", "--reassignment-json-file", str(plan), "--wait")
    elected = done(
        "leader-election", "--election-type", "preferred", "--topic", "foreign", "--partition", "0"
    )
    # Apache's brokers hear of an election one after the other, and a tool may ask any of them.
    described = wait_until(lambda: led_by(2, done), "every broker knows the leader")
    told = json.loads(done("explain", "foreign-0", "--json").stdout)
    words = done("explain", "foreign-0").stdout

    assert read.lines == ["one", "two", "three"]
    assert lag.lines[1].startswith("g,foreign,0,3,3,0,")
    assert elected.lines == ["Successfully completed leader election (PREFERRED) for partitions foreign-0"]
    assert (described[0]["leader"], described[0]["configs"]) == (2, {"retention.ms": "7000000"})
    assert done("get-offsets", "--topic", "foreign", "--time", "earliest").lines == ["foreign:0:1"]
    assert (told["leader"], told["is_told"], told["history"]) == (2, False, [])
    assert "decided by an Apache controller" in words
    assert "controller: broker" in done("describe").lines[0]
    assert done("cluster-id").lines[0].startswith("Cluster ID: ")
    assert any(line.startswith("\tProduce(0): 0 to 11") for line in done("broker-api-versions").lines)
