"""What the commands say, as JSON and CSV for other programs."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from ottla.launch.cluster import Cluster
from support.processes.commands import Run, run_here

pytestmark = [pytest.mark.java, pytest.mark.slow]

RECORDS = 50


@pytest.fixture(scope="module")
def topic(done: Run) -> str:
    done("topics", "--create", "--topic", "rows", "--replica-assignment", "0:1,1:2")
    return "rows"


def rows_of(text: str) -> list[dict[str, Any]]:
    found = json.loads(text)
    assert isinstance(found, list)
    return found


def test_a_measurement_is_one_row_of_numbers(topic: str, cluster: Cluster) -> None:
    servers = ("--bootstrap-server", cluster.bootstrap_servers, "--topic", topic)
    sizes = ("--num-records", str(RECORDS), "--record-size", "10", "--throughput", "-1")

    written = run_here("perf", "produce", *servers, *sizes, "--output", "json")
    read = run_here("perf", "consume", *servers, "--messages", str(RECORDS), "--output", "csv")

    (row,) = rows_of(written.stdout)
    assert (row["records"], row["p50_ms"] <= row["p99_ms"] <= row["max_ms"]) == (RECORDS, True)
    (row,) = csv.DictReader(read.stdout.splitlines())
    assert int(row["data.consumed.in.nMsg"]) >= RECORDS


def test_records_are_objects_one_a_line(topic: str, done: Run) -> None:
    done(
        "console-producer",
        "--topic",
        topic,
        "--property",
        "parse.key=true",
        "--property",
        "key.separator=:",
        stdin="a:ä\n".encode(),
    )
    read = done(
        "console-consumer", "--topic", topic, "--from-beginning", "--timeout-ms", "6000", "--output", "json"
    )

    records = [json.loads(line) for line in read.stdout.splitlines()]
    (found,) = [record for record in records if record["key"] == "a"]
    assert (found["topic"], found["value"], found["headers"]) == (topic, "ä", [])
    assert found["timestamp_type"] == "CreateTime"


def test_replicas_that_were_compared_are_rows(topic: str, done: Run) -> None:
    ran = done(
        "replica-verification", "--topics-include", topic, "--time", "-2", "--once", "--output", "json"
    )

    rows = rows_of(ran.stdout)
    assert [(row["topic"], row["partition"], row["replicas"]) for row in rows] == [
        (topic, 0, [0, 1]),
        (topic, 1, [1, 2]),
    ]
    assert {row["differences"] for row in rows} == {0}
    assert "verification process is started" in ran.stderr


EMPTY = {
    "topics --list": (("topics", "--list", "--topic", "nothing.*"), "topic"),
    "topics --describe": (
        ("topics", "--describe", "--topic", "rows", "--unavailable-partitions"),
        "topic,topic_id,partition,leader,replicas,isr,adding,removing,configs",
    ),
    "consumer-groups --list": (("consumer-groups", "--list", "--state", "dead"), "group,state"),
    "configs": (
        ("configs", "--describe", "--entity-type", "topics", "--entity-name", "rows"),
        "entity_type,entity_name,name,value,source,sensitive",
    ),
    "reassign-partitions": (("reassign-partitions", "--list"), "partition,replicas,adding,removing"),
}


@pytest.mark.parametrize("what", EMPTY)
def test_no_rows_are_a_header_alone(what: str, topic: str, done: Run) -> None:
    words, header = EMPTY[what]

    assert done(*words, "--output", "csv").stdout == f"{header}\n"


def test_znodes_are_rows(topic: str, cluster: Cluster) -> None:
    def shell(*words: str) -> list[dict[str, Any]]:
        return rows_of(
            run_here("zookeeper-shell", cluster.zookeeper.connect, *words, "--output", "json").stdout
        )

    assert {"path": f"/brokers/topics/{topic}"} in shell("ls", "/brokers/topics")
    (row,) = shell("get", f"/brokers/topics/{topic}")
    assert json.loads(row["data"])["partitions"] == {"0": [0, 1], "1": [1, 2]}
    (row,) = shell("stat", "/brokers/ids/0")
    assert row["ephemeralOwner"] != "0x0"


def test_what_a_plan_would_move_is_rows(topic: str, done: Run, ottla: Run, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text('{"version":1,"partitions":[{"topic":"rows","partition":1,"replicas":[1,0]}]}')
    words = ("--execute", "--reassignment-json-file", str(plan), "--output", "json")

    (row,) = rows_of(done("reassign-partitions", *words, "--dry-run").stdout)
    refused = ottla("reassign-partitions", *words)
    drained = ottla("drain", "2", "--output", "json")

    assert (row["topic"], row["partition"], row["now"], row["then"]) == (topic, 1, [1, 2], [1, 0])
    assert (refused.exit_code, drained.exit_code) == (2, 2)
    assert drained.stderr == "ottla: --output is for --dry-run\n"
