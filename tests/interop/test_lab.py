"""The lab itself: Apache's processes, tools and the Java harness do what the other tests stand on."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.apache import ApacheCluster, JavaError, brokers_known_to, java_harness, run_tool

pytestmark = [pytest.mark.apache, pytest.mark.java, pytest.mark.slow]


def test_a_java_oracle_answers_frames_and_reports_what_it_throws() -> None:
    oracle = java_harness("EchoOracle")

    assert oracle.call("echo", b"\x00\xff" * 70_000) == b"\x00\xff" * 70_000
    with pytest.raises(JavaError, match="asked to fail"):
        oracle.call("fail")
    assert oracle.call_text("echo", b"still there") == "still there"


def test_the_oracle_of_a_source_is_started_once() -> None:
    assert java_harness("EchoOracle") is java_harness("EchoOracle")


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


def test_brokers_are_killed_paused_and_return(tmp_path: Path) -> None:
    cluster = ApacheCluster(tmp_path, size=2)
    try:
        cluster.start()
        first, second = cluster.brokers.values()

        second.kill()
        second.restart({1, 2})
        first.pause()
        first.resume()

        assert brokers_known_to(first.port) == {1, 2}
        assert second.shut_down() in (0, 143)
        assert "shut down completed" in second.log_text()
    finally:
        cluster.stop()
