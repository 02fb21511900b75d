"""``ottla.cut``: two brokers that do not reach one another, and are reached by all others."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from ottla.testing import ClusterUnderTest, cuts, start_cluster
from ottla.testing.cuts import NotObeyed
from ottla.wire.apis.metadata import MetadataRequest, MetadataRequestTopic
from support.running.waiting import wait_until
from support.wire.client import WireClient

METADATA_VERSION = 9


@pytest.fixture(scope="module")
def cluster() -> Iterator[ClusterUnderTest]:
    with start_cluster(3) as started:
        yield started


@pytest.fixture
def ottla(cluster: ClusterUnderTest) -> Iterator[ClusterUnderTest]:
    yield cluster
    cluster.restore()


def in_sync(ottla: ClusterUnderTest, topic: str, asked: int) -> tuple[int, set[int]] | None:
    """The leader of the topic's one partition and who is in sync, as one broker says, if it knows."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
    with WireClient(ottla.cluster.brokers[asked].address) as client:
        rows = client.ask(request, METADATA_VERSION).topics[0].partitions
    return (rows[0].leader_id, set(rows[0].isr_nodes)) if rows else None


def test_a_follower_behind_a_cut_leaves_the_isr_and_comes_back(ottla: ClusterUnderTest) -> None:
    topic = ottla.topic()
    leader, everybody = wait_until(lambda: in_sync(ottla, topic, 0), "broker 0 knows the topic")
    third = next(iter({ottla.controller} - {leader}), (leader + 1) % 3)  # Whoever leaves is not controller.
    follower = 3 - leader - third

    ottla.cut(leader, follower)
    producer = Producer({"bootstrap.servers": ottla.cluster.brokers[leader].address, "acks": "1"})
    producer.produce(topic, b"missed")
    assert producer.flush(30) == 0

    for asked in (leader, third):
        wait_until(
            lambda asked=asked: in_sync(ottla, topic, asked) == (leader, {leader, third}),
            f"broker {asked} has heard that the follower is out of sync",
        )
    assert all(broker.is_running for broker in ottla.cluster.brokers)
    ottla.cluster.await_members(frozenset({0, 1, 2}))

    ottla.heal(leader, follower)

    wait_until(lambda: in_sync(ottla, topic, leader) == (leader, everybody), "it has caught up")


def test_a_cut_outlasts_a_restart_and_ends_with_the_test(ottla: ClusterUnderTest) -> None:
    one, other = ottla.cluster.brokers[:2]
    ottla.cut(0, 1)
    ottla.kill(1)
    ottla.cluster.launch_broker(1)
    wait_until(lambda: f"addresses={one.address}" in other.log.read_text(), "it has read its cuts")

    ottla.restore()

    assert (one.cuts.read_text(), other.cuts.read_text()) == ("", "")
    assert "addresses=none" in other.log.read_text()


def test_a_broker_that_does_not_obey_is_named(
    ottla: ClusterUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cuts, "OBEY_S_MAX", 0.0)
    monkeypatch.setattr(type(ottla.cluster.brokers[0]), "send", lambda _self, _number: None)

    with pytest.raises(NotObeyed, match=r"broker 0 did not obey"):
        ottla.cut(0, 1)
