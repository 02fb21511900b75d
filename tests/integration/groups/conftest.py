"""A cluster of three for the groups' tests; a broker that a test kills is started again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ottla.launch.cluster import Cluster
from support.zookeeper.chroots import Chroots


@pytest.fixture(scope="module")
def cluster(chroots: Chroots) -> Iterator[Cluster]:
    settings = {
        "offsets.topic.num.partitions": "5",
        "offsets.topic.replication.factor": "3",
        "min.insync.replicas": "2",
        "default.replication.factor": "3",
        "zookeeper.session.timeout.ms": "2000",
        "group.min.session.timeout.ms": "1000",
        "group.initial.rebalance.delay.ms": "100",
    }
    with Cluster(brokers=3, settings=settings, zookeeper=chroots.make().connect) as running:
        yield running
