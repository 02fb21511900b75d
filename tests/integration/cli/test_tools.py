"""Kafka's tools as ``ottla`` commands, typed against a real cluster."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ottla.launch.cluster import Cluster
from support.processes.commands import Run, ottla_command, run_command
from support.running.waiting import wait_until

pytestmark = [pytest.mark.java, pytest.mark.slow]


def a_topic(done: Run, name: str, assignment: str = "0:1,1:2,2:0") -> str:
    done("topics", "--create", "--topic", name, "--replica-assignment", assignment)
    return name


def test_a_topic_is_created_grown_described_and_deleted(done: Run, ottla: Run) -> None:
    created = done("topics", "--create", "--topic", "life", "--partitions", "2", "--replication-factor", "2")
    done("topics", "--alter", "--topic", "life", "--partitions", "3")

    def described() -> list[dict[str, Any]]:
        """Once the broker that was asked has heard of the third."""
        rows = json.loads(done("topics", "--describe", "--topic", "life", "--output", "json").stdout)
        return rows if len(rows) == 3 else []

    rows = wait_until(described, "the topic has grown")
    done("topics", "--delete", "--topic", "life")

    assert created.stdout == "Created topic life.\n"
    assert [row["partition"] for row in rows] == [0, 1, 2]
    assert all(len(row["replicas"]) == 2 for row in rows)
    assert "life" not in done("topics", "--list").lines


def test_a_topic_that_exists_is_refused_unless_that_is_allowed(done: Run, ottla: Run) -> None:
    a_topic(done, "twice")

    refused = ottla("topics", "--create", "--topic", "twice")
    allowed = done("topics", "--create", "--topic", "twice", "--if-not-exists")

    assert (refused.exit_code, refused.stdout) == (1, "")
    assert refused.stderr == "ottla: twice: Topic 'twice' already exists.\n"
    assert allowed.stdout == ""


def test_a_topic_that_does_not_exist_is_one_sentence(ottla: Run, done: Run) -> None:
    for command in (
        ("topics", "--describe", "--topic", "nowhere"),
        ("topics", "--delete", "--topic", "nowhere"),
        ("console-consumer", "--topic", "nowhere"),
        ("configs", "--describe", "--topic", "nowhere"),
        ("get-offsets", "--topic", "nowhere"),
    ):
        ran = ottla(*command)
        assert ran.exit_code == 1, command
        assert ran.stderr.startswith("ottla: "), ran.stderr
        assert ran.stderr.count("\n") == 1, ran.stderr
    done("topics", "--delete", "--topic", "nowhere", "--if-exists")


def test_what_is_produced_is_consumed_byte_by_byte(done: Run) -> None:
    a_topic(done, "bytes", "0:1")
    lines = b"k1:plain\nk2:\xff\xfe\nk3:NIL\n"
    reading = ("--property", "parse.key=true", "--property", "key.separator=:")

    done("console-producer", "--topic", "bytes", *reading, "--property", "null.marker=NIL", stdin=lines)
    ran = done(
        "console-consumer", "--topic", "bytes", "--from-beginning", "--max-messages", "3",
        "--property", "print.key=true", "--property", "print.offset=true",
        "--property", "print.partition=true",
    )  # fmt: skip

    assert ran.raw == (
        b"Partition:0\tOffset:0\tk1\tplain\n"
        b"Partition:0\tOffset:1\tk2\t\xff\xfe\n"
        b"Partition:0\tOffset:2\tk3\tnull\n"
    )
    assert ran.stderr == "Processed a total of 3 messages\n"


def test_a_line_without_its_key_is_named_and_nothing_after_it_is_sent(ottla: Run, done: Run) -> None:
    a_topic(done, "keyless", "0:1")

    ran = ottla(
        "console-producer", "--topic", "keyless", "--property", "parse.key=true", stdin=b"a\t1\nb\nc\t3\n"
    )

    assert ran.exit_code == 1
    assert ran.stderr == "ottla: No key separator found on line number 2: 'b'\n"
    assert done("get-offsets", "--topic", "keyless").lines == ["keyless:0:1"]


def test_a_group_goes_on_where_it_stopped_and_can_be_moved(done: Run, ottla: Run) -> None:
    a_topic(done, "grouped", "1:2")
    done("console-producer", "--topic", "grouped", stdin=b"one\ntwo\nthree\n")
    consume = ("console-consumer", "--topic", "grouped", "--group", "readers", "--from-beginning")

    first = done(*consume, "--max-messages", "2")
    lag = json.loads(done("consumer-groups", "--describe", "--group", "readers", "--output", "json").stdout)
    rest = done(*consume, "--max-messages", "1")
    scope = ("--group", "readers", "--topic", "grouped")
    planned = done("consumer-groups", "--reset-offsets", *scope, "--to-earliest", "--export")
    back = done("consumer-groups", "--reset-offsets", *scope, "--shift-by", "-1", "--execute")
    again = done(*consume, "--max-messages", "1")

    assert (first.lines, rest.lines, again.lines) == (["one", "two"], ["three"], ["three"])
    assert [(row["current_offset"], row["log_end_offset"], row["lag"]) for row in lag] == [(2, 3, 1)]
    assert planned.stdout == "grouped,0,0\n"
    assert back.lines[-1].split() == ["readers", "grouped", "0", "2"]
    assert "readers" in done("consumer-groups", "--list").lines
    deleted = done("consumer-groups", "--delete", "--group", "readers")
    assert deleted.stdout == "Deletion of requested consumer groups ('readers') was successful.\n"
    assert ottla("consumer-groups", "--describe", "--group", "readers").exit_code == 1


def test_an_exported_plan_can_be_executed(done: Run, tmp_path: Path) -> None:
    a_topic(done, "planned", "0:1")
    done("console-producer", "--topic", "planned", stdin=b"a\nb\nc\n")
    plan = tmp_path / "plan.csv"
    plan.write_text("planned,0,2\n")

    done("consumer-groups", "--reset-offsets", "--group", "by-file", "--from-file", str(plan), "--execute")

    ran = done("consumer-groups", "--describe", "--group", "by-file", "--output", "csv")
    assert ran.lines[1].startswith("by-file,planned,0,2,3,1,")


def test_settings_are_set_shown_and_removed(done: Run, ottla: Run) -> None:
    a_topic(done, "settled", "0:1")

    done(
        "configs",
        "--alter",
        "--topic",
        "settled",
        "--add-config",
        "cleanup.policy=[delete,compact],retention.ms=7",
    )
    shown = done("configs", "--describe", "--topic", "settled")
    done("configs", "--alter", "--topic", "settled", "--delete-config", "retention.ms")
    left = json.loads(done("configs", "--describe", "--topic", "settled", "--output", "json").stdout)

    assert shown.lines[0] == "Dynamic configs for topic settled are:"
    assert shown.lines[2].startswith("  retention.ms=7 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:")
    assert [row["name"] for row in left] == ["cleanup.policy"]
    assert ottla("configs", "--alter", "--topic", "settled", "--delete-config", "retention.ms").exit_code == 1
    assert (
        ottla("configs", "--alter", "--topic", "settled", "--add-config", "retention.ms=soon").exit_code == 1
    )


def test_records_before_an_offset_are_deleted(done: Run, ottla: Run, tmp_path: Path) -> None:
    a_topic(done, "shortened", "0:1")
    done("console-producer", "--topic", "shortened", stdin=b"a\nb\nc\n")
    file = tmp_path / "before.json"
    file.write_text('{"partitions": [{"topic": "shortened", "partition": 0, "offset": 2}], "version": 1}')

    ran = done("delete-records", "--offset-json-file", str(file))

    assert ran.lines[-1] == "partition: shortened-0\tlow_watermark: 2"
    assert done("get-offsets", "--topic", "shortened", "--time", "earliest").lines == ["shortened:0:2"]


def test_a_partition_is_moved_and_its_throttle_is_lifted(done: Run, tmp_path: Path) -> None:
    a_topic(done, "moved", "0:1")
    done("console-producer", "--topic", "moved", stdin=b"a\nb\nc\n")
    plan = tmp_path / "plan.json"
    plan.write_text('{"version":1,"partitions":[{"topic":"moved","partition":0,"replicas":[1,2]}]}')

    rehearsed = done("reassign-partitions", "--execute", "--dry-run", "--reassignment-json-file", str(plan))
    unmoved = json.loads(done("topics", "--describe", "--topic", "moved", "--output", "json").stdout)
    ran = done(
        "reassign-partitions", "--execute", "--reassignment-json-file", str(plan),
        "--throttle", "100000", "--wait",
    )  # fmt: skip

    assert rehearsed.lines[-1].endswith("nothing was changed")
    assert unmoved[0]["replicas"] == [0, 1]
    assert "Reassignment of partition moved-0 is completed." in ran.lines

    def moved() -> tuple[object, ...]:
        rows = json.loads(done("topics", "--describe", "--topic", "moved", "--output", "json").stdout)
        return rows[0]["replicas"], rows[0]["configs"]

    wait_until(lambda: moved() == ([1, 2], {}), lambda: f"every broker knows where it is: {moved()}")


def test_the_old_tool_gives_leaders_back_through_zookeeper(
    done: Run, cluster: Cluster, tmp_path: Path
) -> None:
    a_topic(done, "skewed", "1:2")
    plan = tmp_path / "plan.json"
    plan.write_text('{"version":1,"partitions":[{"topic":"skewed","partition":0,"replicas":[2,1]}]}')
    done("reassign-partitions", "--execute", "--reassignment-json-file", str(plan), "--wait")
    named = tmp_path / "partitions.json"
    named.write_text('{"partitions": [{"topic": "skewed", "partition": 0}]}')

    def leader() -> int:
        described = done("topics", "--describe", "--topic", "skewed", "--output", "json").stdout
        return int(json.loads(described)[0]["leader"])

    assert leader() == 1, "a reassignment leaves a leader that may stay"
    ran = run_command(
        "preferred-replica-election",
        "--zookeeper",
        cluster.zookeeper.connect,
        "--path-to-json-file",
        str(named),
    )

    assert ran.exit_code == 0, ran.stderr
    assert ran.lines[0] == "Created preferred leader election path with skewed-0"
    wait_until(lambda: leader() == 2, "the preferred leader leads")


def test_a_command_without_a_cluster_ends_soon_with_cause_and_next_step() -> None:
    for command in (["topics", "--list"], ["consumer-groups", "--list"], ["cluster-id"]):
        ran = run_command(*command, "--bootstrap-server", "127.0.0.1:1")
        assert ran.exit_code == 1
        assert ran.stderr.startswith("ottla: no broker answers at 127.0.0.1:1 (")
        assert "`ottla up`" in ran.stderr


def test_a_closed_pipe_and_ctrl_c_leave_no_traceback(done: Run, cluster: Cluster) -> None:
    a_topic(done, "endless", "0:1")
    done("console-producer", "--topic", "endless", stdin=b"line\n" * 5000)
    consumer = ottla_command("console-consumer", "--topic", "endless", "--from-beginning")
    consumer += ["--bootstrap-server", cluster.bootstrap_servers]

    with subprocess.Popen(consumer, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as reader:
        assert reader.stdout is not None
        assert reader.stderr is not None
        assert reader.stdout.readline() == b"line\n"
        os.kill(reader.pid, signal.SIGINT)
        reader.stdout.read()
        stopped = (reader.wait(60), reader.stderr.read())
    piped = subprocess.run(
        f"{' '.join(consumer)} | head -1", shell=True, capture_output=True, timeout=90, check=False
    )

    assert stopped[0] == 130
    assert stopped[1].startswith(b"Processed a total of ")
    assert piped.stdout == b"line\n"
    assert b"Traceback" not in piped.stderr
