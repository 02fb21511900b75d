"""What the tests beside Apache Kafka share: the jars and one small cluster per session."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.launch.embedded_zookeeper import EmbeddedZooKeeper
from support.clusters import history
from support.clusters.history import BROKER_SETTINGS, History, live_through
from support.processes.apache import ApacheCluster, apache_cluster, kafka_jars
from support.processes.lab import built_once, lab_dir
from support.zookeeper.chroots import Chroots


@pytest.fixture(scope="session")
def jars() -> Path:
    """Apache Kafka's jars, or a skipped test."""
    return kafka_jars()


@pytest.fixture(scope="session")
def one_apache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheCluster]:
    """A cluster of one Apache broker that tests share; each uses topics of its own."""
    with apache_cluster(tmp_path_factory.mktemp("one-apache")) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def apache_history(tmp_path_factory: pytest.TempPathFactory) -> History:
    """The directories of an Apache broker that has lived; copy before you write to them."""
    digest = hashlib.sha256(Path(history.__file__).read_bytes()).hexdigest()[:12]

    def build(target: Path) -> None:
        directory = tmp_path_factory.mktemp("history")
        with apache_cluster(directory, 2, 1, **BROKER_SETTINGS) as cluster:
            live_through(cluster, target)

    kafka_jars()
    return History.in_directory(built_once(lab_dir() / f"history-{digest}", build))


@pytest.fixture(scope="session")
def chroots(apache_zookeeper_server: EmbeddedZooKeeper) -> Chroots:
    """Comparisons with Apache Kafka run on Apache's own ZooKeeper."""
    return Chroots(apache_zookeeper_server)
