"""A cluster in the background: started, harmed, mended and stopped by commands."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.processes.commands import Ran, run_command
from support.running.waiting import wait_until

pytestmark = [pytest.mark.java, pytest.mark.slow]


def test_a_cluster_in_the_background_is_harmed_mended_and_stopped(tmp_path: Path) -> None:
    def ottla(*words: str) -> Ran:
        return run_command(*words, "--data-dir", str(tmp_path))

    started = ottla("up", "--detach", "--brokers", "2", "--port", "0", "--set", "num.partitions=3")
    try:
        assert started.exit_code == 0, started.stderr
        twice = ottla("up", "--detach", "--port", "0")
        killed = ottla("kill", "1", "--wait")
        wait_until(lambda: "broker 1: has ended" in ottla("status").stdout, "the death is noticed")
        gone = ottla("pause", "1")
        restarted = ottla("restart", "1")
        ottla("pause", "1")
        frozen = ottla("status")
        beside = ottla("restart", "0")
        thawed = ottla("restart", "1")
        status = ottla("status")
    finally:
        stopped = ottla("down")

    assert killed.exit_code == 0, killed.stderr
    assert (twice.exit_code, gone.exit_code) == (1, 1)
    assert "the others have noticed, and it leads nothing any more" in killed.stdout
    remedy = f"`ottla restart 1 --data-dir {tmp_path}`"
    assert gone.stderr == f"ottla: broker 1 has ended; {remedy} starts it\n"
    assert beside.stdout == "broker 0 is started\n", beside.stderr
    assert restarted.stdout == thawed.stdout == "broker 1 is started\n"
    assert "controlled shutdown succeeded" in (tmp_path / "broker-1" / "broker.log").read_text()
    assert f", frozen; `ottla resume 1 --data-dir {tmp_path}` lets it go on" in frozen.stdout
    assert "broker 1: process " in status.stdout
    assert "frozen" not in status.stdout
    logs = [tmp_path / "up.log", *tmp_path.glob("broker-*/broker.log")]
    assert stopped.exit_code == 0, [stopped.stderr, *(log.read_text()[-4_000:] for log in logs)]
    assert ottla("status").exit_code == 1
