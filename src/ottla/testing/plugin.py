"""The pytest plugin: a fixture ``ottla``, a real cluster that is started once and whole again for each test.

It is found by itself where Ottla is installed; nothing but pytest is imported before a test asks for it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from ottla.launch.forking.forked import WarmProcess
    from ottla.testing.cluster import ClusterUnderTest

BROKERS = 3
_warm: pytest.StashKey[WarmProcess] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("ottla", "a Kafka cluster for tests")
    group.addoption("--ottla-brokers", type=int, default=None, help="how many brokers (3)")
    parser.addini(
        "ottla_brokers", "how many brokers the cluster of the ottla fixture has", default=str(BROKERS)
    )
    group.addoption("--ottla-zookeeper", default=None, help="keeper, apache or HOST:PORT (keeper)")
    parser.addini("ottla_zookeeper", "which ZooKeeper: keeper, apache or HOST:PORT", default="")
    parser.addini("ottla_settings", "broker settings, one name=value a line", type="linelist", default=[])


def pytest_itemcollected(item: pytest.Item) -> None:
    """The first test that wants a cluster is found: brokers are imported while others are collected."""
    config = item.config
    is_wanted = "ottla_cluster" in getattr(item, "fixturenames", ())
    if not is_wanted or _warm in config.stash or config.option.collectonly:
        return
    from ottla.launch.forking import forked

    if forked.IS_QUICKER:
        directory = tempfile.TemporaryDirectory(prefix="ottla-warm-")
        config.add_cleanup(directory.cleanup)
        config.stash[_warm] = forked.WarmProcess(Path(directory.name) / "brokers.out")
        config.add_cleanup(config.stash[_warm].stop)  # Where no test came to want it.


@pytest.fixture(scope="session")
def ottla_cluster(request: pytest.FixtureRequest) -> Iterator[ClusterUnderTest]:
    """The cluster of the whole run; most tests want ``ottla``."""
    from ottla.launch.refusal import LaunchRefused
    from ottla.testing.cluster import start_cluster

    config = request.config
    brokers = config.getoption("--ottla-brokers") or int(config.getini("ottla_brokers"))
    zookeeper = config.getoption("--ottla-zookeeper") or config.getini("ottla_zookeeper") or None
    settings = {}
    for line in config.getini("ottla_settings"):
        name, equals, value = line.partition("=")
        if not equals:
            raise pytest.UsageError(f"ottla_settings: {line!r} is not name=value")
        settings[name.strip()] = value.strip()
    try:
        warm = config.stash.get(_warm, None)
        with start_cluster(brokers, settings=settings, zookeeper=zookeeper, warm=warm) as cluster:
            yield cluster
    except LaunchRefused as refused:
        pytest.fail(f"the cluster did not start: {refused}", pytrace=False)


@pytest.fixture
def ottla(ottla_cluster: ClusterUnderTest, request: pytest.FixtureRequest) -> Iterator[ClusterUnderTest]:
    """The cluster, all brokers running, with topics named after this test."""
    cluster = ottla_cluster.named(request.node.name)
    cluster.restore()
    yield cluster
    cluster.restore()
