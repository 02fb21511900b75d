"""A cluster in one command, and the drill: the controller dies, leaders move, it returns, balance is back."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, ElectionType, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from kazoo.client import KazooClient

from ottla.launch.cluster import Cluster
from support.processes.deaths import die
from support.running.waiting import wait_until
from support.zookeeper.chroots import Chroot

pytestmark = [pytest.mark.slow, pytest.mark.java]
QUIET = {"log_level": 0}


class Drill:
    """A cluster of three, its admin client and its znodes."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, **QUIET})
        self.zk = KazooClient(hosts=cluster.zookeeper.connect)
        self.zk.start(timeout=20)

    def close(self) -> None:
        self.zk.stop()
        self.zk.close()

    def create(self, topic: str, *replicas: list[int]) -> None:
        new = NewTopic(topic, num_partitions=len(replicas), replica_assignment=list(replicas))
        self.admin.create_topics([new])[topic].result(30)

    def read(self, path: str) -> Any:
        return json.loads(self.zk.get(path)[0])

    def controller(self) -> tuple[int, int]:
        """Who, and the epoch."""
        wait_until(lambda: self.zk.exists("/controller"), "somebody is controller")
        return self.read("/controller")["brokerid"], int(self.zk.get("/controller_epoch")[0])

    def states(self, topic: str) -> list[dict[str, Any]]:
        count = len(self.read(f"/brokers/topics/{topic}")["partitions"])
        return [self.read(f"/brokers/topics/{topic}/partitions/{i}/state") for i in range(count)]

    def leaders(self, topic: str) -> list[int]:
        return [state["leader"] for state in self.states(topic)]

    def elect_preferred(self, topic: str) -> bool:
        """Whether the first replicas lead; the client may ask yesterday's controller, or one too busy."""
        with suppress(KafkaException):
            self.admin.elect_leaders(ElectionType.PREFERRED, None).result(30)
        return self.leaders(topic) == [0, 1, 2]

    def wait_for_full_isr(self, topic: str) -> None:
        wait_until(
            lambda: all(len(s["isr"]) == 3 for s in self.states(topic)),
            lambda: f"every ISR is full: {self.states(topic)}",
            60,
        )

    def kill_controller(self) -> int:
        dead, epoch = self.controller()
        die(self.cluster, dead)
        wait_until(lambda: self.controller()[1] == epoch + 1, "the office moved", 30)
        assert self.controller()[0] != dead
        return dead


@pytest.fixture
def drill(request: pytest.FixtureRequest, zookeeper: Chroot) -> Iterator[Drill]:
    settings = getattr(request, "param", {})
    with Cluster(brokers=3, settings=settings, zookeeper=zookeeper.connect) as cluster:
        drill = Drill(cluster)
        try:
            yield drill
        finally:
            drill.close()


def produce(cluster: Cluster, topic: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "acks": "all", **QUIET})
    errors: list[Any] = []
    for number in range(count):
        producer.produce(topic, str(number), key=str(number), on_delivery=lambda e, _: e and errors.append(e))
    assert producer.flush(60) == 0
    assert errors == []


def consume(cluster: Cluster, topic: str, partitions: int) -> list[str]:
    """Everything that is committed now."""
    keys = [TopicPartition(topic, index, 0) for index in range(partitions)]
    with closing(wait_until(lambda: _a_consumer(cluster, keys), f"all of {topic} has leaders")) as consumer:
        ends = [consumer.get_watermark_offsets(key, timeout=30)[1] for key in keys]
        consumer.assign(keys)
        values: list[str] = []
        while len(values) < sum(ends):
            message = consumer.poll(30)
            assert message is not None, f"read {len(values)} of {sum(ends)}"
            assert message.error() is None, message.error()
            values.append(message.value().decode())
        return values


def _a_consumer(cluster: Cluster, keys: list[TopicPartition]) -> Consumer | None:
    """One that knows the leaders; None while it was told of a dead one: librdkafka would go on asking it."""
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": "drill", **QUIET})
    try:
        for key in keys:
            consumer.get_watermark_offsets(key, timeout=3)
    except KafkaException:
        consumer.close()
        return None
    return consumer


def test_the_drill(drill: Drill):
    drill.create("orders", [0, 1, 2], [1, 2, 0], [2, 0, 1])
    produce(drill.cluster, "orders", 300)
    assert drill.leaders("orders") == [0, 1, 2]

    dead = drill.kill_controller()
    wait_until(lambda: dead not in drill.leaders("orders"), "its partitions have other leaders", 30)
    assert all(
        dead not in state["isr"] and state["leader"] in state["isr"] for state in drill.states("orders")
    )
    assert drill.leaders("orders")[dead] == (dead + 1) % 3, "the next in-sync replica leads"
    produce(drill.cluster, "orders", 300)

    drill.cluster.start_broker(dead)
    drill.wait_for_full_isr("orders")
    assert dead not in drill.leaders("orders"), "it only follows"

    wait_until(
        lambda: drill.elect_preferred("orders"),
        lambda: f"the preferred replicas are elected: {drill.states('orders')}",
        60,
        every=0.5,
    )
    assert len(consume(drill.cluster, "orders", 3)) == 600


@pytest.mark.parametrize("drill", [{"leader.imbalance.check.interval.seconds": "1"}], indirect=True)
def test_the_drill_with_automatic_balance(drill: Drill):
    drill.create("orders", [0, 1, 2], [1, 2, 0], [2, 0, 1])
    dead = drill.kill_controller()
    wait_until(lambda: dead not in drill.leaders("orders"), "its partitions have other leaders", 30)

    drill.cluster.start_broker(dead)

    wait_until(
        lambda: drill.leaders("orders") == [0, 1, 2], "every partition is back on its first replica", 60
    )


def test_a_controller_that_was_frozen_finds_itself_replaced(drill: Drill):
    """It wakes with a dead session and an old epoch: nothing it meant to do takes (KAFKA-1096)."""
    drill.create("orders", [0, 1, 2], [1, 2, 0], [2, 0, 1])
    frozen, epoch = drill.controller()
    drill.cluster.brokers[frozen].pause()
    wait_until(lambda: not drill.zk.exists(f"/brokers/ids/{frozen}"), "ZooKeeper gave it up", 30)
    wait_until(lambda: drill.controller()[1] == epoch + 1, "another is controller", 30)
    wait_until(lambda: frozen not in drill.leaders("orders"), "its partitions have other leaders", 30)
    before = drill.states("orders")

    drill.cluster.brokers[frozen].resume()

    wait_until(lambda: drill.zk.exists(f"/brokers/ids/{frozen}"), "it is a member again", 30)
    drill.wait_for_full_isr("orders")
    assert drill.controller()[1] == epoch + 1, "it did not take the office back"
    assert [s["leader"] for s in drill.states("orders")] == [s["leader"] for s in before]
    produce(drill.cluster, "orders", 100)


def test_reasons_can_be_read_by_any_client_even_after_failover(drill: Drill):
    drill.create("orders", [0, 1, 2])

    def reasons(at_least: int) -> list[dict[str, Any]]:
        if not drill.zk.exists("/brokers/topics/__ottla_decisions/partitions/0/state"):
            return []
        found = [json.loads(value) for value in consume(drill.cluster, "__ottla_decisions", 1)]
        mine = [each for each in found if each["partition"] == "orders-0"]
        return mine if len(mine) >= at_least else []

    wait_until(lambda: reasons(1), "the first decision is written", 60, every=0.5)
    drill.kill_controller()

    found = wait_until(lambda: reasons(2), "both decisions are written", 60, every=0.5)

    assert found[0]["rule"] == "new partition"
    assert found[1]["controller_epoch"] == found[0]["controller_epoch"] + 1
    assert found[1]["candidates"][0]["broker"] == 0


def test_a_cluster_comes_up_again_on_its_data(tmp_path: Path):
    with Cluster(brokers=3, data_dir=tmp_path / "data", sync=False) as cluster:
        drill = Drill(cluster)
        drill.create("orders", [0, 1, 2])
        drill.close()
        produce(cluster, "orders", 100)
        addresses = cluster.bootstrap_servers

    with Cluster(brokers=3, data_dir=tmp_path / "data", sync=False) as again:
        assert again.bootstrap_servers == addresses
        assert sorted(consume(again, "orders", 1), key=int) == [str(n) for n in range(100)]


def test_ottla_up_says_where_to_connect_and_stops_in_order(tmp_path: Path):
    command = [Path(sys.executable).with_name("ottla"), "up", "--brokers", "1", "--port", "0"]
    output = tmp_path / "printed"
    with output.open("w") as printed:
        running = subprocess.Popen(
            [*command, "--data-dir", tmp_path / "data"], stdout=printed, stderr=printed
        )
    try:
        elected = "broker 0 was elected controller, epoch 1"
        wait_until(lambda: elected in output.read_text(), "the cluster is up", 60)
        running.send_signal(signal.SIGINT)
        assert running.wait(60) == 0
    finally:
        running.kill()
        running.wait()
    words = output.read_text()
    assert "bootstrap.servers  127.0.0.1:" in words
    assert words.rstrip().endswith(f"stopped; the data is in {tmp_path / 'data'}")
    assert (tmp_path / "data" / "broker-0" / "logs" / ".kafka_cleanshutdown").exists()
