"""The same commands at Apache's own brokers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.wire.apis.metadata import MetadataRequest, MetadataRequestTopic
from support.client.console_process import page_of, running_console, twin_of
from support.processes.apache import ApacheCluster, apache_cluster
from support.processes.commands import Ran, run_command, run_here
from support.running.waiting import wait_until
from support.wire.client import WireClient

pytestmark = [pytest.mark.apache, pytest.mark.java, pytest.mark.slow]


@pytest.fixture(scope="module")
def apache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheCluster]:
    with apache_cluster(tmp_path_factory.mktemp("apache"), size=2) as running:
        yield running


def all_know(apache: ApacheCluster, leader: int) -> bool:
    """Whether each broker, asked by itself, names this leader of the topic's one partition."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name="foreign")], allow_auto_topic_creation=False)
    named = []
    for broker in apache.brokers.values():
        with WireClient(broker.address) as client:
            (topic,) = client.ask(request, 9).topics
        named += [row.leader_id for row in topic.partitions] or [-1]
    return set(named) == {leader}


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
    wait_until(lambda: all_know(apache, 1), "every broker knows the topic")
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
    wait_until(lambda: all_know(apache, 2), "every broker knows the leader")
    described = json.loads(done("topics", "--describe", "--topic", "foreign", "--output", "json").stdout)
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


def test_the_console_shows_apaches_brokers_and_says_that_there_is_no_history(apache: ApacheCluster) -> None:
    words = ("--bootstrap-server", apache.bootstrap, "--create", "--topic", "shown")
    assert run_here("topics", *words, "--replica-assignment", "1:2").exit_code == 0

    with running_console(apache.bootstrap) as address:
        wait_until(lambda: twin_of(address, "/partitions.json?q=shown")["found"] == 1, "the topic is seen")
        first = twin_of(address, "/index.json")
        partition = twin_of(address, "/partitions/shown/0.json")
        page = page_of(address, "/partitions/shown/0")
        metrics = page_of(address, "/metrics")
        security = twin_of(address, "/security.json")

    assert [row["broker"] for row in first["brokers"]] == [1, 2]
    assert (first["frame"]["has_history"], partition["leader"]) == (False, 1)
    assert partition["replicas"][0]["if_it_died"] == "broker 2 would lead, in sync 2"
    assert "No history" in page
    assert security["sentence"].startswith("Everybody may do everything: no broker has an authorizer.")
    assert [row["brokers"] for row in security["listeners"]] == ["1,2"]
    assert 'kafka_topic_partition_replicas{partition="0",topic="shown"} 2' in metrics
