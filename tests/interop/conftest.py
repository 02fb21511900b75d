"""What the tests beside Apache Kafka share: the jars and one small cluster per session."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.apache import ApacheCluster, apache_cluster, kafka_jars
from support.history import BROKER_SETTINGS, History, live_through


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
    directory = tmp_path_factory.mktemp("history")
    with apache_cluster(directory, 2, 1, **BROKER_SETTINGS) as cluster:
        return live_through(cluster, directory)
