"""A cluster of processes in name only: whom it waits for, and what it refuses."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.launch import cluster as launch
from ottla.launch import kafka_probe
from ottla.launch.cluster import STOP_LIMIT_S, BrokerProcess, Cluster
from ottla.launch.kafka_probe import ClusterSeen
from ottla.launch.processes import KILLED
from ottla.launch.refusal import LaunchRefused
from ottla.testing.cluster import ClusterUnderTest
from support.running.waiting import wait_until


class Process:
    """Runs until it is stopped."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.sent: list[signal.Signals] = []

    def exit_code(self) -> int | None:
        return 0 if signal.SIGTERM in self.sent else None

    def send(self, number: signal.Signals) -> None:
        self.sent.append(number)

    def freeze(self) -> None:
        self.send(signal.SIGSTOP)

    def wait(self, _seconds: float) -> int | None:
        return 0

    def let_go(self) -> None:
        pass

    def stop(self) -> int:
        return 0


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """Three brokers at somebody else's ZooKeeper."""
    made = Cluster(3, data_dir=tmp_path, zookeeper="127.0.0.1:1")

    def run(broker: BrokerProcess, _settings: Any = None, _warm: None = None) -> None:
        process: Any = Process()
        broker._process = process

    monkeypatch.setattr(BrokerProcess, "launch", run)
    monkeypatch.setattr(launch, "IS_QUICKER", False)
    for broker in made.brokers:
        run(broker)
    return made


def everyone_sees(monkeypatch: pytest.MonkeyPatch, brokers: set[int], controller: int) -> None:
    monkeypatch.setattr(
        kafka_probe, "see_cluster", lambda _host, _port: ClusterSeen(frozenset(brokers), controller)
    )


ALL = frozenset({0, 1, 2})


@pytest.mark.parametrize("controller", [0, 7])
def test_brokers_of_others_are_no_reason_to_wait(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, controller: int
) -> None:
    everyone_sees(monkeypatch, {0, 1, 2, 7, 9}, controller)

    cluster.await_members(ALL, timeout_s=0)
    cluster.stop()

    assert not any(broker.is_running for broker in cluster.brokers)


@pytest.mark.parametrize(("brokers", "controller"), [({0, 1, 7}, 0), ({0, 1, 2}, -1), ({0, 1, 2}, 7)])
def test_one_of_ours_or_the_controller_is_missing(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, brokers: set[int], controller: int
) -> None:
    everyone_sees(monkeypatch, brokers, controller)

    with pytest.raises(LaunchRefused, match=r"broker 0 did not find brokers \[0, 1, 2\]"):
        cluster.await_members(ALL, timeout_s=-1)


@pytest.mark.parametrize("seen", [{0, 1, 2}, {0, 2}])
def test_a_frozen_broker_does_not_keep_another_from_its_restart(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, seen: set[int]
) -> None:
    """Whether its session has expired or not."""
    monkeypatch.setattr(BrokerProcess, "is_frozen", property(lambda broker: broker.broker_id == 1))
    everyone_sees(monkeypatch, seen, 2)

    cluster.start_broker(0)


def test_a_frozen_controller_is_waited_for(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    everyone_sees(monkeypatch, {0, 1, 2}, 1)

    with pytest.raises(LaunchRefused):
        cluster.await_members(frozenset({0, 2}), frozenset({1}), timeout_s=-1)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")
def test_whoever_froze_it(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as sleeping:
        broker = BrokerProcess(0, tmp_path)
        process: Any = SimpleNamespace(pid=sleeping.pid, exit_code=lambda: None)
        broker._process = process
        assert not broker.is_frozen
        sleeping.send_signal(signal.SIGSTOP)
        wait_until(lambda: broker.is_frozen, "the signal has come")
        sleeping.kill()


def test_a_comma_is_refused_where_log_dirs_would_take_it_for_two(tmp_path: Path) -> None:
    with pytest.raises(LaunchRefused, match="has a comma in its name"):
        Cluster(1, data_dir=tmp_path / "one,two").start()


def test_a_cluster_under_test_is_whole_again_after_a_pause(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    awaited: list[frozenset[int]] = []
    monkeypatch.setattr(cluster, "await_members", awaited.append)
    under_test = ClusterUnderTest(cluster)

    under_test.restore()
    assert awaited == []
    under_test.pause(1)
    under_test.resume(1)
    under_test.restore()
    under_test.restore()

    assert awaited == [ALL]


def test_brokers_that_hang_are_ended_side_by_side(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """One after the other they would take longer than `ottla down` waits."""
    done: list[tuple[str, int]] = []
    waited: list[float] = []

    class Hanging(Process):
        def __init__(self, number: int) -> None:
            super().__init__()
            self.number = number
            self.is_over = False

        def exit_code(self) -> int | None:
            return KILLED if self.is_over else None

        def wait(self, seconds: float) -> None:
            now[0] += seconds
            waited.append(seconds)

        def let_go(self) -> None:
            done.append(("let go", self.number))

        def stop(self) -> int:
            done.append(("gone", self.number))
            self.is_over = True
            return KILLED

    now = [100.0]
    monkeypatch.setattr(launch, "time", SimpleNamespace(monotonic=lambda: now[0]))
    everyone_sees(monkeypatch, {0, 1, 2}, 2)
    hanging: list[Any] = [Hanging(number) for number in range(3)]
    for broker, process in zip(cluster.brokers, hanging, strict=True):
        broker._process = process

    cluster.stop()

    assert done[:4] == [("let go", 0), ("let go", 1), ("gone", 0), ("gone", 1)]
    assert sum(waited[:2]) == STOP_LIMIT_S
    assert signal.SIGUSR1 in hanging[0].sent
    assert hanging[2].is_over
