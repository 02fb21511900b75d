"""A cluster of Ottla and Apache brokers, what it leaves in ZooKeeper, and a load that counts every record."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, ElectionType, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions
from confluent_kafka.cimpl import NewTopic
from kazoo.client import KazooClient
from kazoo.exceptions import NodeExistsError, NoNodeError

from ottla.launch.embedded_zookeeper import EmbeddedZooKeeper
from support.clusters.watermarks import watermarks
from support.processes.apache import ApacheBroker, ApacheZooKeeper, wait_until_unregistered
from support.processes.broker_process import wait_all_usable
from support.processes.deaths import end_session
from support.processes.ottla_broker import OttlaBroker
from support.processes.ports import free_port
from support.running.waiting import wait_until

QUIET = {"log_level": 0}
# Long enough that nobody is given up because the machine stood still, or because a test froze it for a while.
SETTINGS: dict[str, Any] = {
    "offsets.topic.replication.factor": 3,
    "replica.lag.time.max.ms": 10_000,
    "auto.leader.rebalance.enable": False,
    "zookeeper.session.timeout.ms": 8_000,
    "auto.create.topics.enable": False,
    "file.delete.delay.ms": 500,
    "log.segment.delete.delay.ms": 500,
    "controlled.shutdown.retry.backoff.ms": 500,
}


_KINDS: dict[str, Any] = {"ottla": OttlaBroker, "apache": ApacheBroker}
_OWN = ("broker.id", "listeners", "zookeeper.connect", "log.dirs")


LOST_IN_MID_CHANGE = "Controller moved to another broker when moving some"


def has_resigned(broker: ApacheBroker) -> bool:
    """Whether an Apache broker has done what it does when another has taken the office from it."""
    log = broker.log_of_this_life()
    won, lost = (
        log.count(line) for line in (" successfully elected as the controller.", "] Resigned (kafka.")
    )
    return lost >= won


class MixedCluster:
    """Brokers by id; ``kinds`` says which is which: ``{1: "ottla", 2: "apache"}``."""

    def __init__(self, directory: Path, kinds: dict[int, str], **props: Any) -> None:
        self.directory = directory
        self.zookeeper: ApacheZooKeeper | EmbeddedZooKeeper = (
            ApacheZooKeeper(directory / "zookeeper")
            if "apache" in kinds.values()
            else EmbeddedZooKeeper(directory / "zookeeper", port=free_port(), sync=False)
        )
        settings = {**SETTINGS, **props}
        self.brokers: dict[int, OttlaBroker | ApacheBroker] = {
            number: _KINDS[kind](
                number, self.zookeeper.connect, None, directory / f"broker-{number}", **settings
            )
            for number, kind in kinds.items()
        }
        self._zk: KazooClient | None = None
        self._admin: AdminClient | None = None

    # ---- life

    def start(self) -> None:
        self.zookeeper.start()
        first, *others = self.brokers.values()
        first.start()
        for broker in others:
            broker.launch()
        wait_all_usable(self.brokers.values())

    def stop(self) -> None:
        if self._zk is not None:
            self._zk.stop()
            self._zk.close()
        for broker in self.brokers.values():
            broker.stop()
        self.zookeeper.stop()

    @property
    def bootstrap(self) -> str:
        return ",".join(broker.address for broker in self.brokers.values())

    @property
    def zk(self) -> KazooClient:
        if self._zk is None:
            self._zk = KazooClient(hosts=self.zookeeper.connect)
            self._zk.start(timeout=20)
        return self._zk

    @property
    def admin(self) -> AdminClient:
        if self._admin is None:
            self._admin = AdminClient({"bootstrap.servers": self.bootstrap, **QUIET})
        return self._admin

    def kill(self, number: int, *, ends_session: bool = True) -> None:
        """kill -9, and ZooKeeper has noticed: seconds later by itself, or at once as if those had passed."""
        self.brokers[number].kill()
        self._admin = None  # librdkafka's may go on asking the dead one, for longer than any test waits.
        if ends_session:
            end_session(self.zk, number)
        wait_until_unregistered(self.zookeeper.connect, number)

    def start_again(self, number: int) -> None:
        self.brokers[number].restart(frozenset({number}))

    def swap(self, number: int, kind: str) -> None:
        """Stop a broker in order and start another kind in its place: same port, directory and settings."""
        old = self.brokers[number]
        assert old.shut_down() in (0, 143), old.log_tail()
        wait_until_unregistered(self.zookeeper.connect, number)
        settings = {name: value for name, value in old.settings().items() if name not in _OWN}
        self.brokers[number] = _KINDS[kind](number, self.zookeeper.connect, old.port, old.log_dir, **settings)
        self.brokers[number].start(frozenset({number}))

    def revive(self) -> None:
        """Whatever a test left, failed or not: every broker runs and knows the others."""
        for number, broker in self.brokers.items():
            if broker.is_running:
                broker.resume()
            else:
                self.start_again(number)
        wait_all_usable(self.brokers.values())

    def mend(self) -> None:
        """Everyone is back, and no topic and no order is left."""
        self.revive()
        for path in ("/admin/reassign_partitions", "/admin/preferred_replica_election"):
            with suppress(NoNodeError):
                self.zk.delete(path)
        self._sweep()

    def _sweep(self) -> None:
        left = [name for name in self.zk.get_children("/brokers/topics") if not name.startswith("__")]
        if not left:
            return
        # Ours, where there is one: an Apache controller may forget what another began to delete.
        sweeper = next((n for n, b in self.brokers.items() if isinstance(b, OttlaBroker)), None)
        if sweeper is not None:
            self.elect_controller(sweeper)
        for name in left:
            with suppress(NodeExistsError):
                self.zk.create(f"/admin/delete_topics/{name}")
        for name in left:
            self.wait_gone(name)

    # ---- znodes

    def read(self, path: str) -> Any:
        """A znode's JSON; None when it is not there."""
        try:
            return json.loads(self.zk.get(path)[0])
        except NoNodeError:
            return None

    @property
    def controller(self) -> int:
        node = self.read("/controller")
        return -1 if node is None else int(node["brokerid"])

    @property
    def controller_epoch(self) -> int:
        return int(self.zk.get("/controller_epoch")[0])

    def state(self, topic: str, index: int = 0) -> dict[str, Any] | None:
        return self.read(f"/brokers/topics/{topic}/partitions/{index}/state")

    def states(self, topic: str) -> list[dict[str, Any]]:
        count = len((self.read(f"/brokers/topics/{topic}") or {"partitions": {}})["partitions"])
        return [state for index in range(count) if (state := self.state(topic, index)) is not None]

    def leaders(self, topic: str) -> list[int]:
        return [state["leader"] for state in self.states(topic)]

    def elect_controller(self, number: int) -> None:
        """Take the office from who has it; the others are frozen until that broker has won."""
        self._renew_spoiled()
        self._give_office(number)
        while self._renew_spoiled():
            self._give_office(number)
        self._know_controller()

    def _give_office(self, number: int) -> None:
        if self.controller == number:
            return
        others = [broker for n, broker in self.brokers.items() if n != number and broker.is_running]
        for broker in others:
            broker.pause()
        try:
            with suppress(NoNodeError):
                self.zk.delete("/controller")
            wait_until(lambda: self.controller == number, f"broker {number} is controller", 30, every=0.01)
        finally:
            for broker in others:
                broker.resume()

    def _renew_spoiled(self) -> bool:
        """Start Apache brokers anew that lost the office in the middle of a state change; whether any had.

        What such a controller meant to send stays in its batch, and elected again it sends nothing at all:
        "Controller to broker state change requests batch is not empty while creating a new one".
        """
        apaches = {n: b for n, b in self.brokers.items() if isinstance(b, ApacheBroker) and b.is_running}
        governs = self.controller
        for number, broker in apaches.items():
            if number != governs:
                wait_until(partial(has_resigned, broker), f"broker {number} has resigned", 30)
        spoiled = [n for n, broker in apaches.items() if LOST_IN_MID_CHANGE in broker.log_of_this_life()]
        for number in spoiled:
            self.brokers[number].shut_down()
            self.start_again(number)
        return bool(spoiled)

    def _know_controller(self) -> None:
        """The client asks whom it last heard of, for minutes: let it hear of the one who governs now."""
        heard = ""

        def is_known() -> bool:
            nonlocal heard
            number = self.controller
            try:
                told = self.admin.list_topics(timeout=10).controller_id
            except KafkaException as error:  # whoever was asked was frozen, or had just been started
                heard = str(error)
                return False
            heard = f"broker {told} is named, {number} governs"
            return number != -1 and told == number

        wait_until(is_known, lambda: f"the brokers and the client know who is controller: {heard}", 60)

    def wait_for_isr(self, topic: str, size: int, seconds_max: float = 60) -> None:
        wait_until(
            lambda: all(len(state["isr"]) == size for state in self.states(topic)),
            lambda: f"every ISR of {topic} has {size} members: {self.states(topic)}",
            seconds_max,
            every=0.2,
        )

    # ---- administration

    def create(self, topic: str, *replicas: list[int], **config: str) -> None:
        new = NewTopic(
            topic,
            num_partitions=len(replicas),
            replica_assignment=[list(held) for held in replicas],
            config={name.replace("_", "."): value for name, value in config.items()},
        )
        self._know_controller()
        self.admin.create_topics([new])[topic].result(30)

    def grow(self, topic: str, count: int) -> None:
        self._know_controller()
        self.admin.create_partitions([NewPartitions(topic, count)])[topic].result(30)

    def delete(self, topic: str) -> None:
        self._know_controller()
        self.admin.delete_topics([topic])[topic].result(30)

    def wait_gone(self, topic: str) -> None:
        """Until no znode and no directory is left of it, but for those that wait for their removal."""
        paths = [f"/brokers/topics/{topic}", f"/config/topics/{topic}", f"/admin/delete_topics/{topic}"]
        wait_until(lambda: not any(self.zk.exists(path) for path in paths), f"{topic} left ZooKeeper", 60)
        wait_until(
            lambda: not self.directories(topic),
            lambda: f"{topic} left the disks: {self.directories(topic)}",
            60,
            every=0.2,
        )

    def directories(self, topic: str) -> list[Path]:
        found = [path for broker in self.brokers.values() for path in Path(broker.log_dir).glob(f"{topic}-*")]
        return [path for path in found if path.is_dir() and not path.name.endswith("-delete")]

    def prefer(self, *partitions: tuple[str, int]) -> None:
        keys = [TopicPartition(topic, index) for topic, index in partitions]
        self._know_controller()
        for error in self.admin.elect_leaders(ElectionType.PREFERRED, keys).result(30).values():
            assert error is None, error

    def elect_uncleanly(self, topic: str, index: int) -> None:
        """Until it took: the replica that shall lead may not have been heard of yet."""

        def took() -> bool:
            self._know_controller()
            asked = self.admin.elect_leaders(ElectionType.UNCLEAN, [TopicPartition(topic, index)])
            return all(error is None for error in asked.result(30).values())

        wait_until(took, f"{topic}-{index} has a leader", 30, every=0.5)

    def reassign_by_znode(self, topic: str, index: int, replicas: list[int]) -> None:
        row = {"topic": topic, "partition": index, "replicas": replicas}
        self.zk.create("/admin/reassign_partitions", json.dumps({"version": 1, "partitions": [row]}).encode())

    def wait_moved(self, topic: str, index: int, replicas: list[int], seconds_max: float = 60) -> None:
        """Until the reassignment is done and the old copies are gone."""

        def is_done() -> bool:
            node = self.read(f"/brokers/topics/{topic}")
            moving = node["adding_replicas"] or node["removing_replicas"]
            return not moving and node["partitions"][str(index)] == replicas

        wait_until(
            is_done,
            lambda: f"{topic}-{index} is on {replicas}: {self.read(f'/brokers/topics/{topic}')}",
            seconds_max,
            every=0.1,
        )
        holders = {n for n, b in self.brokers.items() if n not in replicas and b.log_dir.exists()}
        strays = [self.brokers[n].log_dir / f"{topic}-{index}" for n in holders]
        wait_until(lambda: not any(path.exists() for path in strays), "old copies are gone", 30)


class Load:
    """A producer with acks=all that never stops; at the end every acknowledged record must be there."""

    def __init__(self, cluster: MixedCluster, topic: str) -> None:
        self.topic = topic
        self.acked: dict[str, tuple[int, int]] = {}
        """By record the partition and the offset that its leader told."""
        self.failed: list[str] = []
        self._cluster = cluster
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="load")

    def _run(self) -> None:
        producer = Producer(
            {
                "bootstrap.servers": self._cluster.bootstrap,
                "acks": "all",
                "enable.idempotence": True,
                "linger.ms": 5,
                "message.timeout.ms": 90_000,
                **QUIET,
            }
        )
        number = 0
        while not self._stop.wait(0.005):
            for _ in range(5):
                value = f"record-{number}"
                number += 1
                producer.produce(self.topic, value, key=str(number), on_delivery=self._delivered)
            producer.poll(0)
        producer.flush(90)

    def _delivered(self, error: Any, message: Any) -> None:
        if error is None:
            self.acked[message.value().decode()] = (message.partition(), message.offset())
        else:
            self.failed.append(str(error))

    def check(self) -> None:
        """Stop, read everything, and compare: nothing lost, nothing twice."""
        self._stop.set()
        self._thread.join()
        found = dict(read_places(self._cluster, self.topic))  # a place that is read twice counts once
        assert not self.failed, self.failed[:3]
        assert len(self.acked) > 100, f"only {len(self.acked)} records were acknowledged"
        there = set(found.values())
        missing = {value: place for value, place in self.acked.items() if value not in there}
        assert not missing, f"of {len(self.acked)} acknowledged records are lost: {self._told_of(missing)}"
        assert len(found) == len(there), "records stand there twice"

    def _told_of(self, missing: dict[str, tuple[int, int]]) -> str:
        """Where they were said to be, what is read there now, and who leads."""
        now = dict(read_places(self._cluster, self.topic))
        rows = [f"{value} at {place}, now {now.get(place)!r}" for value, place in missing.items()]
        return f"{rows[:5]}; {self._cluster.states(self.topic)}"

    def __enter__(self) -> Load:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


def read_all(cluster: MixedCluster, topic: str) -> list[str]:
    """Every record of a topic."""
    return [value for _, value in read_places(cluster, topic)]


def read_places(cluster: MixedCluster, topic: str) -> list[tuple[tuple[int, int], str]]:
    """Every record of a topic with its partition and offset, by assignment and not by group.

    Each partition is read to the end that it has now.
    """
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "checker", **QUIET})
    try:
        partitions = cluster.admin.list_topics(topic, timeout=20).topics[topic].partitions
        ends = {index: watermarks(consumer, topic, index)[1] for index in partitions}
        consumer.assign([TopicPartition(topic, index, 0) for index in partitions])
        read: list[tuple[tuple[int, int], str]] = []
        left = {index for index, end in ends.items() if end}
        while left:
            message = consumer.poll(20)
            assert message is not None, f"read {len(read)} of {ends}; {left} did not come to their ends"
            assert message.error() is None, message.error()
            read.append(((message.partition(), message.offset()), message.value().decode()))
            if message.offset() >= ends[message.partition()] - 1:
                left.discard(message.partition())
        return read
    finally:
        consumer.close()


@contextmanager
def mixed_cluster(directory: Path, kinds: dict[int, str], **props: Any) -> Iterator[MixedCluster]:
    """A running cluster for the length of a ``with``."""
    cluster = MixedCluster(directory, kinds, **props)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
