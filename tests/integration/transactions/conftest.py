"""A cluster of three for the tests of transactions; a broker that a test kills is started again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ottla.launch.cluster import Cluster
from support.zookeeper.chroots import Chroots


@pytest.fixture(scope="module")
def cluster(chroots: Chroots) -> Iterator[Cluster]:
    settings = {
        "offsets.topic.num.partitions": "5",
        "transaction.state.log.num.partitions": "5",
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
        "min.insync.replicas": "2",
        "default.replication.factor": "3",
        "num.partitions": "3",
        "zookeeper.session.timeout.ms": "2000",
        "group.initial.rebalance.delay.ms": "100",
        "group.min.session.timeout.ms": "1000",
    }
    with Cluster(brokers=3, settings=settings, zookeeper=chroots.make().connect) as running:
        yield running
