"""The built-in keeper as a process of a cluster: the same handles as Apache's server, and the same files."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from ottla.client.admin.topics import a_topic, create_topics, describe_topics
from ottla.client.blocking.client import Client
from ottla.launch.cluster import Cluster
from ottla.launch.embedded_zookeeper import EmbeddedZooKeeper
from ottla.launch.ports import free_ports
from ottla.launch.refusal import LaunchRefused
from ottla.launch.zookeeper.choice import chosen_zookeeper
from ottla.launch.zookeeper.foreign import ForeignZooKeeper
from ottla.launch.zookeeper.keeper import EmbeddedKeeper
from ottla.launch.zookeeper_probe import accepts_sessions


def test_it_grants_sessions_until_it_is_stopped(tmp_path: Path) -> None:
    with EmbeddedKeeper(tmp_path / "data", sync=False) as keeper:
        assert accepts_sessions("127.0.0.1", keeper.port, 1.0)
        assert keeper.mode() == "standalone"
        assert keeper.wait(0) is None

    assert not accepts_sessions("127.0.0.1", keeper.port, 1.0)
    assert keeper.wait(0) == 0


def test_a_frozen_one_answers_nothing_and_goes_on(tmp_path: Path) -> None:
    with EmbeddedKeeper(tmp_path, sync=False) as keeper:
        keeper.pause()
        assert not accepts_sessions("127.0.0.1", keeper.port, 0.2)

        keeper.resume()
        keeper.await_session()


def test_a_killed_one_starts_again_on_its_port(tmp_path: Path) -> None:
    with EmbeddedKeeper(tmp_path, sync=False) as keeper:
        port = keeper.port
        os.kill(keeper.pid, signal.SIGKILL)
        assert keeper.wait(10) == 128 + signal.SIGKILL

        keeper.start()

        assert keeper.port == port


def test_a_directory_has_one_server_at_a_time_of_either_kind(tmp_path: Path) -> None:
    with EmbeddedKeeper(tmp_path, sync=False):
        for other in (EmbeddedKeeper(tmp_path), EmbeddedZooKeeper(tmp_path)):
            with pytest.raises(LaunchRefused, match="is in use"):
                other.start()


def test_a_port_in_use_is_refused(tmp_path: Path) -> None:
    with (
        EmbeddedKeeper(tmp_path / "one", sync=False) as keeper,
        pytest.raises(LaunchRefused, match=f"port {keeper.port} on 127.0.0.1 is in use"),
    ):
        EmbeddedKeeper(tmp_path / "two", port=keeper.port).start()


def test_one_that_cannot_read_its_files_says_why(tmp_path: Path) -> None:
    (tmp_path / "version-2").write_text("not a directory")

    with pytest.raises(LaunchRefused, match=r"the keeper ended with exit code 1 .*its log is .*keeper\.log"):
        EmbeddedKeeper(tmp_path).start()


def test_a_cluster_changes_its_zookeeper_and_keeps_its_topics(tmp_path: Path) -> None:
    for number, choice in enumerate(("keeper", "apache", "keeper")):
        with Cluster(1, data_dir=tmp_path, zookeeper=choice) as cluster:
            with Client(cluster.bootstrap_servers) as client:
                client.run(create_topics, [a_topic(f"on-{number}", partitions=1, replication_factor=1)])
                known = {topic.name for topic in client.run(describe_topics).topics}
            assert {f"on-{earlier}" for earlier in range(number + 1)} <= known


def test_the_choice_is_a_word_a_variable_or_an_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OTTLA_ZOOKEEPER", raising=False)
    assert isinstance(chosen_zookeeper(None, tmp_path), EmbeddedKeeper)
    monkeypatch.setenv("OTTLA_ZOOKEEPER", "apache")
    assert isinstance(chosen_zookeeper(None, tmp_path), EmbeddedZooKeeper)
    assert isinstance(chosen_zookeeper("keeper", tmp_path), EmbeddedKeeper)
    port = free_ports(1)[0]
    assert isinstance(chosen_zookeeper(f"127.0.0.1:{port}/here", tmp_path), ForeignZooKeeper)
    with pytest.raises(LaunchRefused):
        chosen_zookeeper("keeper:port", tmp_path)
