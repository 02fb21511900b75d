"""The same conversation of a producer with an Apache and an Ottla transaction coordinator: the same answers.

Two clusters of one broker each. A topic that lies on a broker which is not there keeps transactions prepared.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient

from interop.test_groups_equal_apaches import parting
from ottla.wire.apis.find_coordinator import FindCoordinatorRequest
from ottla.wire.apis.init_producer_id import InitProducerIdRequest
from ottla.wire.apis.list_transactions import ListTransactionsRequest
from ottla.wire.apis.metadata import MetadataRequest, MetadataRequestTopic
from support.groups.two_clusters import TwoClusters, two_clusters
from support.running.waiting import wait_until
from support.transactions import partition_cases
from support.transactions.cases import CASES, STUCK
from support.transactions.conversation import answers_in
from support.wire.client import WireClient

pytestmark = [pytest.mark.apache, pytest.mark.java, pytest.mark.slow]

ABSENT = 99
STUCK_TOPICS = (STUCK, partition_cases.GONE)
DIFFERENCES = Path(__file__).parents[2] / "docs" / "differences.md"
SETTINGS: dict[str, Any] = {
    "transaction.state.log.num.partitions": 1,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 300,
}


ALL_CASES = [*CASES, *partition_cases.CASES]
DIFFERENT = {
    "a-stale-owner-aborts-too": "InitProducerId with an old epoch of a producer id whose transaction is open",
}
"""Conversations that must part, and the row of docs/differences.md that says why."""


def make_stuck(connect: str, topic: str) -> None:
    """Only an old tool can make a topic on a broker that is not there."""
    zk = KazooClient(hosts=connect)
    zk.start(timeout=20)
    try:
        config = {"version": 1, "config": {"min.insync.replicas": "2"}}
        zk.create(f"/config/topics/{topic}", json.dumps(config).encode())
        zk.create(
            f"/brokers/topics/{topic}", json.dumps({"version": 1, "partitions": {"0": [0, ABSENT]}}).encode()
        )
    finally:
        zk.stop()
        zk.close()


def coordinates(address: str) -> bool:
    """Whether the broker has its transactions loaded, and producer ids to give."""
    with WireClient(address) as client:
        if client.ask(FindCoordinatorRequest(key="t", key_type=1), 3).error_code:
            return False
        has_ids = client.ask(InitProducerIdRequest(transactional_id=None), 4).error_code == 0
        return has_ids and client.ask(ListTransactionsRequest(), 0).error_code == 0


def leads(address: str, topic: str) -> bool:
    with WireClient(address) as client:
        topics = [MetadataRequestTopic(name=topic)]
        row = client.ask(MetadataRequest(topics=topics), 12).topics[0]
        return row.error_code == 0 and row.partitions[0].leader_id == 0


@pytest.fixture(scope="module")
def clusters(jars: object, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoClusters]:
    with two_clusters(tmp_path_factory.mktemp("two"), **SETTINGS) as running:
        for broker in running.both:
            for topic in STUCK_TOPICS:
                make_stuck(str(broker.settings()["zookeeper.connect"]), topic)
            wait_until(lambda at=broker.address: coordinates(at), "the broker coordinates transactions", 60)
            for topic in STUCK_TOPICS:
                wait_until(
                    lambda at=broker.address, name=topic: leads(at, name), "the broker leads the topic", 60
                )
        yield running


@pytest.mark.parametrize(("name", "run"), ALL_CASES, ids=[name for name, _ in ALL_CASES])
def test_a_producers_conversation_is_the_same_at_both(clusters: TwoClusters, name: str, run: Any) -> None:
    theirs = answers_in(run, name, clusters.apache.address)
    ours = answers_in(run, name, clusters.ottla.address)

    if name in DIFFERENT:
        assert parting(theirs, ours), "they answer alike: take it off the list, and out of the document"
        assert DIFFERENT[name] in DIFFERENCES.read_text(encoding="utf-8")
    else:
        parts = parting(theirs, ours)
        assert not parts, "\n".join(parts)
