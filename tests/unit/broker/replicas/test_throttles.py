"""The rate that a replication throttle measures, and whom a leader holds back."""

from collections.abc import Iterator
from dataclasses import replace

from ottla.broker.replicas.throttles import Rate
from ottla.config.log import UNLIMITED
from ottla.znodes import paths
from ottla.znodes.codec_config import ConfigNode, encode_config
from ottla.zookeeper.ops import ANY_VERSION, Create, SetData
from support.bench.led_broker import ME, SECOND, TOPIC, LedBroker, a_batch, headers


def test_a_rate_is_exceeded_by_too_many_bytes_within_its_windows() -> None:
    rate = Rate()
    rate.limit = 1_000

    rate.record(9_000, now_ms=0)
    assert not rate.is_exceeded(100)
    rate.record(2_000, now_ms=100)
    assert rate.is_exceeded(100)


def test_a_rate_forgets_what_is_long_ago() -> None:
    rate = Rate()
    rate.limit = 1_000
    rate.record(50_000, now_ms=0)

    assert rate.is_exceeded(5_000)
    assert not rate.is_exceeded(12_000)


def test_without_a_limit_nothing_is_exceeded() -> None:
    rate = Rate()
    rate.record(10**12, now_ms=0)

    assert rate.limit == UNLIMITED
    assert not rate.is_exceeded(1)


def a_throttled_leader(isr: tuple[int, ...]) -> LedBroker:
    broker = LedBroker().lead(isr=isr)
    broker.log.config = replace(
        broker.node.configs.log_config(TOPIC), leader_replication_throttled_replicas=(f"0:{ME}",)
    )
    broker.node.throttles.leader.limit = 1_000
    broker.produce_now(a_batch("x" * 60_000))
    broker.fetch_now(0, replica=SECOND)
    return broker


def test_a_follower_that_is_behind_gets_nothing_while_the_rate_is_exceeded() -> None:
    broker = a_throttled_leader(isr=(ME,))

    assert headers(broker.fetch_now(0, replica=SECOND)) == []
    broker.advance(120_000)
    assert len(headers(broker.fetch_now(0, replica=SECOND))) == 1


def test_a_follower_in_the_isr_is_served_whatever_the_rate() -> None:
    """KAFKA-7152."""
    broker = a_throttled_leader(isr=(ME, SECOND))

    assert len(headers(broker.fetch_now(0, replica=SECOND))) == 1


class Walked(tuple[str, ...]):
    """A list of replicas that counts how often somebody looks through it."""

    walks = 0

    def __iter__(self) -> Iterator[str]:
        self.walks += 1
        return super().__iter__()

    def __contains__(self, replica: object) -> bool:
        self.walks += 1
        return super().__contains__(replica)


def test_a_long_list_of_throttled_replicas_is_not_walked_for_every_fetch() -> None:
    broker = a_throttled_leader(isr=(ME,))
    replicas = Walked(f"{partition}:{ME}" for partition in range(5_000))
    broker.log.config = replace(broker.log.config, leader_replication_throttled_replicas=replicas)

    for _ in range(20):
        assert headers(broker.fetch_now(0, replica=SECOND)) == []

    assert replicas.walks == 1


def test_all_partitions_of_a_topic_share_its_settings_until_they_change() -> None:
    broker = LedBroker().lead(isr=(ME,))
    configs = broker.node.configs
    path = paths.config_entity("topics", TOPIC)

    broker.zk(Create(path, encode_config(ConfigNode({"flush.ms": "7"}))))
    broker.node.runtime.own.spawn(configs.read_topics([TOPIC]))
    broker.settle()
    first = configs.log_config(TOPIC)
    assert configs.log_config(TOPIC) is first
    broker.zk(SetData(path, encode_config(ConfigNode({"flush.ms": "8"})), ANY_VERSION))
    broker.node.runtime.own.spawn(configs.read_topics([TOPIC]))
    broker.settle()

    assert (first.flush_ms, configs.log_config(TOPIC).flush_ms) == (7, 8)
    configs.forget_topics([TOPIC])
    assert configs.log_config(TOPIC) is broker.node.config.log
