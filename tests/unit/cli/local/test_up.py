"""``ottla up`` with a cluster in name only: it stops in order, whoever listens, and harms no other's."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.cli.local import detached, down, faults, output
from ottla.cli.local.state import LOCK_NAME, LOG_NAME, STATE_NAME, UpState, read_state
from ottla.cli.shared.refusal import CommandRefused
from ottla.cli.shared.signals import StopAsked
from ottla.launch import cluster as launch
from ottla.launch.data_dir import lock_data_dir
from ottla.launch.refusal import LaunchRefused
from support.processes.commands import Ran, run_here

LOOKS = 3


class ClusterInName:
    """One broker that runs, until somebody has looked a few times; then the user presses Ctrl-C."""

    def __init__(self, *_arguments: Any, data_dir: Path, **_settings: Any) -> None:
        self.data_dir = data_dir
        self.bootstrap_servers = "127.0.0.1:1"
        self.closed = None
        self.client_files: list[Path] = []
        self.is_stopped = False
        self.looks_left = LOOKS
        self.zookeeper = SimpleNamespace(connect="127.0.0.1:2", wait=self._look)
        self.brokers = [
            SimpleNamespace(broker_id=0, log=data_dir / "log", pid=1, is_running=True, stop=lambda: None)
        ]

    def _look(self, _seconds: float) -> None:
        self.looks_left -= 1
        if not self.looks_left:
            raise StopAsked

    def start(self) -> None:
        self.data_dir.mkdir(exist_ok=True)

    def start_broker(self, number: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def stop(self) -> None:
        self.is_stopped = True

    def ended(self) -> list[Any]:
        return []


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[ClusterInName]:
    """The clusters that ``ottla up`` made."""
    all_made: list[ClusterInName] = []

    def make(*arguments: Any, **settings: Any) -> ClusterInName:
        all_made.append(ClusterInName(*arguments, **settings))
        return all_made[-1]

    monkeypatch.setattr(launch, "Cluster", make)
    return all_made


def up(data_dir: Path) -> Ran:
    return run_here("up", "--data-dir", str(data_dir))


def silence(monkeypatch: pytest.MonkeyPatch, number: int, after: str) -> None:
    """From this line on nothing can be printed."""
    state = {"is_silent": False}

    def echo(line: str) -> None:
        state["is_silent"] |= line.startswith(after)
        if state["is_silent"]:
            raise OSError(number, os.strerror(number))

    monkeypatch.setattr(output, "typer", SimpleNamespace(echo=echo))


def test_a_directory_with_a_cluster_is_refused_before_anything_is_started(
    tmp_path: Path, made: list[ClusterInName]
) -> None:
    lock = lock_data_dir(tmp_path, LOCK_NAME)
    refused = up(tmp_path)
    os.close(lock)

    assert made == []
    assert (refused.exit_code, refused.stdout) == (1, "")
    at = f"--data-dir {tmp_path}`"
    assert refused.stderr == (
        f"ottla: a cluster runs on {tmp_path} already; see `ottla status {at}, stop it with `ottla down {at},"
        " or name another --data-dir\n"
    )


def test_a_terminal_that_closes_does_not_cut_the_stop_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: list[ClusterInName]
) -> None:
    silence(monkeypatch, errno.EIO, "stopping")

    assert up(tmp_path).exit_code == 0

    assert made[0].is_stopped


def test_a_reader_who_leaves_ends_the_cluster_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: list[ClusterInName]
) -> None:
    silence(monkeypatch, errno.EPIPE, "ready after")

    up(tmp_path)

    assert made[0].is_stopped
    assert made[0].looks_left == LOOKS
    assert not (tmp_path / STATE_NAME).exists()


def test_a_full_disk_ends_no_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: list[ClusterInName]
) -> None:
    def full(*_arguments: Any, **_options: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    silence(monkeypatch, errno.ENOSPC, "starting")
    monkeypatch.setattr(Path, "write_text", full)
    (tmp_path / "requests").mkdir()
    forgotten = "ottla.cli.local.state.forget_requests"
    monkeypatch.setattr(forgotten, lambda _directory: (tmp_path / "requests" / "restart-0").touch())

    assert up(tmp_path).exit_code == 0

    assert (made[0].looks_left, made[0].is_stopped) == (0, True)


def test_a_broker_that_came_back_counts_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: list[ClusterInName]
) -> None:
    """Also where the restart was called a failure: another broker was frozen meanwhile."""
    first = SimpleNamespace(broker_id=0, was_killed=False, why_it_ended=lambda: "broker 0 ended")
    second = SimpleNamespace(broker_id=1, was_killed=False, why_it_ended=lambda: "broker 1 ended")
    rounds = iter([[first], [], [second]])
    monkeypatch.setattr(ClusterInName, "ended", lambda _self: next(rounds))
    make = ClusterInName.__init__

    def with_two(self: ClusterInName, *arguments: Any, **settings: Any) -> None:
        make(self, *arguments, **settings)
        self.brokers *= 2

    monkeypatch.setattr(ClusterInName, "__init__", with_two)

    ran = up(tmp_path)

    assert (ran.exit_code, ran.stderr) == (0, "")


def test_whoever_was_killed_is_told_with_the_command_that_brings_it_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: list[ClusterInName]
) -> None:
    killed = SimpleNamespace(broker_id=0, was_killed=True, why_it_ended=lambda: "broker 0 was killed")
    monkeypatch.setattr(ClusterInName, "ended", lambda _self: [killed])

    ran = up(tmp_path)

    assert f"broker 0 was killed; `ottla restart 0 --data-dir {tmp_path}` brings it back" in ran.lines


@pytest.mark.parametrize(("was_killed", "looks_left", "exit_code"), [(True, 0, 0), (False, LOOKS, 1)])
def test_a_cluster_whose_brokers_were_all_killed_waits_for_them_and_ends_if_they_ended_by_themselves(
    was_killed: bool,
    looks_left: int,
    exit_code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    made: list[ClusterInName],
) -> None:
    ended = SimpleNamespace(broker_id=0, was_killed=was_killed, why_it_ended=lambda: "broker 0 ended")
    monkeypatch.setattr(ClusterInName, "ended", lambda _self: [ended])

    ran = up(tmp_path)

    assert (ran.exit_code, made[0].looks_left) == (exit_code, looks_left)


def test_a_cluster_that_does_not_stop_is_told_with_what_would_end_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = []
    monkeypatch.setattr(down, "require_state", lambda _directory: UpState(17, "b", "z", {0: 18, 1: None}))
    monkeypatch.setattr(down, "STOP_S_MAX", 0.0)
    monkeypatch.setattr(os, "kill", lambda pid, number: sent.append((pid, number)))
    monkeypatch.setattr("ottla.cli.local.state.is_locked", lambda _directory: True)

    assert "`kill -9 17` ends it" in run_here("down", "--data-dir", str(tmp_path)).stderr
    assert sent == [(17, signal.SIGTERM), (17, signal.SIGUSR1), (18, signal.SIGUSR1)]


def test_a_broker_of_another_user_is_told_with_who_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kill(_pid: int, _number: int) -> None:
        raise PermissionError

    monkeypatch.setattr(faults, "require_state", lambda _directory: UpState(17, "b", "z", {0: 18}))
    monkeypatch.setattr(os, "kill", kill)

    assert "only that user or root" in run_here("kill", "0", "--data-dir", str(tmp_path)).stderr


def test_the_state_of_the_one_before_is_not_believed(tmp_path: Path) -> None:
    def written(pid: int) -> UpState | None:
        state = {"pid": pid, "bootstrap_servers": "b", "zookeeper": "z", "brokers": {"0": 1}}
        (tmp_path / STATE_NAME).write_text(json.dumps(state))
        return read_state(tmp_path)

    lock = lock_data_dir(tmp_path, LOCK_NAME)
    try:
        assert written(os.getpid() + 1) is None
        assert written(os.getpid()) == UpState(os.getpid(), "b", "z", {0: 1})
        for odd in ("[]", "7", '{"brokers": []}', '{"brokers": {"x": 1}}', "{"):
            (tmp_path / STATE_NAME).write_text(odd)
            assert read_state(tmp_path) is None
    finally:
        os.close(lock)


def test_down_of_a_cluster_that_has_just_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    monkeypatch.setattr(down, "require_state", lambda _directory: UpState(gone.pid, "b", "z", {}))

    assert run_here("down", "--data-dir", str(tmp_path)).stdout.startswith("stopped;")


def test_down_of_another_users_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def kill(_pid: int, _number: int) -> None:
        raise PermissionError

    monkeypatch.setattr(down, "require_state", lambda _directory: UpState(17, "b", "z", {}))
    monkeypatch.setattr(os, "kill", kill)

    ran = run_here("down", "--data-dir", str(tmp_path))

    assert (ran.exit_code, ran.stderr) == (
        1,
        "ottla: process 17 belongs to another user, who must stop it\n",
    )


@pytest.mark.slow
def test_the_log_of_a_cluster_in_the_background_is_continued(tmp_path: Path) -> None:
    log = tmp_path / LOG_NAME
    log.write_text("somebody else's\n")

    with pytest.raises(CommandRefused, match=r"the cluster did not start: .*no-such-option"):
        detached.start_detached(tmp_path, ["--no-such-option"])

    assert log.read_text().startswith("somebody else's\n")


def test_all_that_went_wrong_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: list[ClusterInName]
) -> None:
    def refuse(_self: ClusterInName) -> None:
        raise LaunchRefused("no")

    monkeypatch.setattr(ClusterInName, "start", refuse)

    assert up(tmp_path).stderr == "ottla: no\n"
    assert made[0].is_stopped
