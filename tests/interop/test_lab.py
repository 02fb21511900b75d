"""The lab itself: Apache's processes, tools and the Java harness do what the other tests stand on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.java.class_archive import archive_flags
from support.processes.apache import (
    ApacheCluster,
    JavaError,
    brokers_known_to,
    java_harness,
    kafka_jars,
    run_tool,
)
from support.processes.java_process import java_command
from support.running.waiting import wait_until

pytestmark = [pytest.mark.apache, pytest.mark.java, pytest.mark.slow]


def test_a_java_oracle_answers_frames_and_reports_what_it_throws() -> None:
    oracle = java_harness("EchoOracle")

    assert oracle.call("echo", b"\x00\xff" * 70_000) == b"\x00\xff" * 70_000
    with pytest.raises(JavaError, match="asked to fail"):
        oracle.call("fail")
    assert oracle.call_text("echo", b"still there") == "still there"


def test_the_oracle_of_a_source_is_started_once() -> None:
    assert java_harness("EchoOracle") is java_harness("EchoOracle")


def test_the_archived_classes_are_those_of_the_jars() -> None:
    never_without = (*archive_flags(), "-Xshare:on")
    command = java_command("org.apache.kafka.tools.TopicCommand", "--version", flags=never_without)

    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    assert (done.returncode, done.stdout.strip()) == (0, "3.9.1"), done.stderr


def test_a_tool_of_kafka_reports_its_exit_code_and_output(one_apache: ApacheCluster) -> None:
    created = run_tool(
        "org.apache.kafka.tools.TopicCommand",
        "--bootstrap-server",
        one_apache.bootstrap,
        "--create",
        "--topic",
        "lab",
    )
    refused = run_tool(
        "org.apache.kafka.tools.TopicCommand",
        "--bootstrap-server",
        one_apache.bootstrap,
        "--create",
        "--topic",
        "lab",
    )

    assert (created.exit_code, created.stdout.strip()) == (0, "Created topic lab.")
    assert refused.exit_code == 1
    assert "already exists" in refused.stdout


@pytest.mark.full("an Apache cluster of its own")
def test_brokers_are_killed_paused_and_return(tmp_path: Path) -> None:
    cluster = ApacheCluster(tmp_path, size=2)
    try:
        cluster.start()
        first, second = cluster.brokers.values()

        second.kill()
        second.restart({1, 2})
        first.pause()
        first.resume()

        # That the second knows both is no word of the first.
        wait_until(lambda: brokers_known_to(first.port) == {1, 2}, "the first broker knows both")
        assert second.shut_down() in (0, 143)
        assert "shut down completed" in second.log_text()
    finally:
        cluster.stop()


def test_a_missing_maven_skips_with_one_line_and_fails_where_nothing_may_be_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "java").write_text("#!/bin/sh\n")
    (tmp_path / "java").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("OTTLA_LAB", str(tmp_path / "lab"))

    monkeypatch.setenv("CI", "")
    with pytest.raises(pytest.skip.Exception, match="mvn is not on the PATH"):
        kafka_jars.__wrapped__()
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="mvn is not on the PATH"):
        kafka_jars.__wrapped__()


def test_a_directory_of_the_lab_is_built_once_however_many_ask(tmp_path: Path) -> None:
    script = (
        "import sys, pathlib, time\n"
        "from support.processes.lab import built_once\n"
        "def build(target):\n"
        "    with open(sys.argv[1] + '/builders', 'a') as file: file.write('x')\n"
        "    time.sleep(0.3)\n"
        "    (target / 'whole').touch()\n"
        "assert (built_once(pathlib.Path(sys.argv[1]) / 'lab' / 'thing', build) / 'whole').exists()\n"
    )
    tests = Path(__file__).resolve().parents[1]
    asking = [
        subprocess.Popen(
            [sys.executable, "-c", script, str(tmp_path)], env={**os.environ, "PYTHONPATH": str(tests)}
        )
        for _ in range(3)
    ]

    assert [each.wait(60) for each in asking] == [0, 0, 0]
    assert (tmp_path / "builders").read_text() == "x"
    assert sorted(each.name for each in (tmp_path / "lab").iterdir()) == ["thing", "thing.lock"]
