"""What the world itself sees of brokers: members that stay behind, wrong tails, news that go back."""

from types import SimpleNamespace
from typing import Any

import pytest

from ottla.model.ids import TopicPartition
from ottla.replication.isr import Isr
from ottla.replication.leader import FollowerProgress
from ottla.sim.truth.history import History, Violation
from ottla.sim.truth.turns import TurnChecks
from ottla.sim.world import MILLISECOND, World
from ottla.storage.log.leader_epochs import EpochEntry, LeaderEpochs

LAG_MS = 1_000


class Led:
    """Broker 1 leads a partition that broker 2 follows, far behind."""

    def __init__(self) -> None:
        self.world = World(1)
        self.leader = SimpleNamespace(
            isr=Isr((1, 2)), followers={2: FollowerProgress(0)}, end_offset=9, lag_time_max_ms=LAG_MS
        )
        self.partition: Any = SimpleNamespace(
            name=TopicPartition("topic-0", 0), leader_epoch=3, leader=self.leader
        )
        self.broker: Any = SimpleNamespace(world=self.world, life=1, awake_since_us=0)
        self.checks = TurnChecks({}, History(), lambda name: None, lambda broker: False, 2)

    def look(self, at_ms: int, isr: tuple[int, ...] = (1, 2)) -> None:
        self.world.now_us = at_ms * MILLISECOND
        self.leader.isr = Isr(isr)
        self.checks._check_lag(self.broker, self.partition)


def test_a_member_that_stays_behind_and_is_not_dropped_is_seen() -> None:
    led = Led()
    led.look(at_ms=2_000)

    with pytest.raises(Violation, match=r"2 is in the ISR of topic-0-0 and behind since 2\.0 s"):
        led.look(at_ms=4_500)


def test_one_that_was_dropped_meanwhile_has_its_time_anew() -> None:
    """Seeds 573041926 and 573042259."""
    led = Led()
    led.look(at_ms=2_000)
    led.look(at_ms=3_000, isr=(1,))

    led.look(at_ms=4_500)

    with pytest.raises(Violation, match=r"behind since 4\.5 s"):
        led.look(at_ms=7_000)


def seen(offset: int, isr: list[int], logs: dict[int, tuple[int, int] | None]) -> bool:
    """May a consumer have seen the offset? Of brokers the watermark and the end of the log, if any."""
    name = TopicPartition("topic-0", 0)

    def broker(marks: tuple[int, int] | None) -> Any:
        log = None if marks is None else SimpleNamespace(high_watermark=marks[0], end_offset=marks[1])
        found = None if log is None else SimpleNamespace(name=name, log=log)
        partitions = SimpleNamespace(find=lambda *_: found, all=lambda: [found] if found is not None else [])
        return SimpleNamespace(node=SimpleNamespace(partitions=partitions))

    brokers = {number: broker(marks) for number, marks in logs.items()}
    checks = TurnChecks(brokers, History(), lambda name: {"isr": isr}, lambda broker: False, 2)
    for each in brokers.values():
        checks.on_answer(each, "a client")
    return checks.is_committed(name, offset)


def test_what_was_committed_when_a_client_was_answered_stays_so() -> None:
    """Seed 50118: the next leader's watermark lagged, and the old one took it over."""
    name = TopicPartition("topic-0", 0)
    log = SimpleNamespace(high_watermark=7, end_offset=9)
    partitions = SimpleNamespace(find=lambda *_: found, all=lambda: [found])
    found = SimpleNamespace(name=name, log=log)
    broker: Any = SimpleNamespace(node=SimpleNamespace(partitions=partitions))
    checks = TurnChecks({1: broker}, History(), lambda name: {"isr": [1]}, lambda broker: False, 2)

    checks.on_answer(broker, "a client")
    log.high_watermark = 8
    checks.on_answer(broker, "broker-2")
    log.high_watermark = 6

    assert [checks.is_committed(name, offset) for offset in (6, 7)] == [True, False]


def test_what_consumers_see_is_below_a_watermark_or_its_leader_has_lost_its_disk() -> None:
    """Seed 1946504203: the leader's answer was under way when its disk failed."""
    assert seen(4, [1, 2], {1: (5, 9), 2: (3, 9)})
    assert not seen(5, [1, 2], {1: (5, 9), 2: (3, 9)}), "all are there, and none knows it committed"
    assert seen(5, [1, 2], {1: None, 2: (3, 6)})
    assert not seen(6, [1, 2], {1: None, 2: (3, 6)}), "the other one lacks it"
    assert not seen(5, [1], {1: None, 2: (3, 6)}), "none that counts is left"


def a_replica(epochs: list[tuple[int, int]] | None, end: int) -> Any:
    """A broker with a log of these (epoch, start) and that end; None: its epochs were not read yet."""
    known = None if epochs is None else LeaderEpochs([EpochEntry(*each) for each in epochs])
    log = SimpleNamespace(_epochs=known, epochs=known, log_start_offset=0, end_offset=end)
    partition = SimpleNamespace(name=TopicPartition("topic-0", 0), leader_epoch=2, log=log)
    node = SimpleNamespace(
        partitions=SimpleNamespace(find=lambda *_: partition),
        log_dirs=SimpleNamespace(offline=(), get=lambda name: log),
        is_started=True,
    )
    return SimpleNamespace(node=node, exit=None, partition=partition)


@pytest.mark.parametrize(
    ("epochs", "end", "complaint"),
    [
        ([(1, 0), (2, 5)], 8, None),
        ([(1, 0)], 5, "lacks 6"),
        ([(1, 0)], 9, "has another record at 6"),
        (None, 9, None),
    ],
)
def test_a_member_with_a_wrong_tail_does_not_have_what_is_committed(
    epochs: list[tuple[int, int]] | None, end: int, complaint: str | None
) -> None:
    brokers = {1: a_replica([(1, 0), (2, 5)], 8), 2: a_replica(epochs, end)}
    state = {"leader_epoch": 2, "isr": [1, 2]}
    checks = TurnChecks(brokers, History(), lambda name: state, lambda broker: False, 2)

    if complaint is None:
        checks._check_strong_isr(brokers[1].partition, 7)
    else:
        with pytest.raises(Violation, match=complaint):
            checks._check_strong_isr(brokers[1].partition, 7)


@pytest.mark.parametrize(("leader_epoch", "is_fine"), [(2, True), (3, True), (1, False)])
def test_a_follower_has_nothing_of_an_epoch_that_it_was_not_told_of(leader_epoch: int, is_fine: bool) -> None:
    partition = a_replica([(1, 0), (2, 5)], 8).partition
    partition.leader_epoch, partition.follower = leader_epoch, object()

    if is_fine:
        TurnChecks._check_followed(partition, 3)
    else:
        with pytest.raises(Violation, match="3 follows topic-0-0 in epoch 1 and has records of 2"):
            TurnChecks._check_followed(partition, 3)


def told(life: int, *versions: tuple[int, int]) -> tuple[Any, list[Any]]:
    """A broker, and the (leader epoch, version) that it is told of one partition, one after another."""
    topic = SimpleNamespace(name="topic-0", topic_id=bytes(16), partitions={})
    broker = SimpleNamespace(
        life=life, node=SimpleNamespace(metadata=SimpleNamespace(topics={"topic-0": topic}))
    )
    return broker, [SimpleNamespace(leader_epoch=epoch, zk_version=version) for epoch, version in versions]


@pytest.mark.parametrize("older", [(3, 6), (2, 7), (2, 8)])
def test_news_that_are_older_than_what_a_broker_knows_are_seen(older: tuple[int, int]) -> None:
    broker, news = told(1, (2, 6), (3, 7), (3, 7), older)
    checks = TurnChecks({}, History(), lambda name: None, lambda broker: False, 2)
    partitions = broker.node.metadata.topics["topic-0"].partitions
    for info in news[:3]:
        partitions[0] = info
        checks._check_news(broker, 1)

    partitions[0] = news[3]
    with pytest.raises(Violation, match="broker 1 knew topic-0-0 at epoch 3 version 7"):
        checks._check_news(broker, 1)

    broker.life = 2
    checks._check_news(broker, 1)  # whoever begins anew knows nothing
