"""A whole cluster in one world: brokers, ZooKeeper, clients, and the checks that run beside them."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ottla.config.areas import BrokerConfig
from ottla.config.broker_file import read_broker_file
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.records.batch import batches
from ottla.sim.broker import SimBroker
from ottla.sim.clients import Client, Consumer, Producer
from ottla.sim.history import History, Violation
from ottla.sim.network import Network
from ottla.sim.world import MILLISECOND, SECOND, World
from ottla.sim.zookeeper import ZooKeeperService
from ottla.storage.crash_disk import CrashDisk
from ottla.storage.log import Log
from ottla.wire.apis.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

PORT = 9092
CREATE_TOPICS_VERSION = 5


@dataclass
class Shape:
    """What a run is made of; most of it is drawn from the seed."""

    brokers: int = 3
    topics: int = 1
    partitions: int = 2
    replication_factor: int = 3
    min_insync_replicas: int = 2
    settings: dict[str, str] = field(default_factory=dict)


class Cluster:
    """Brokers 1 to n, all started, with the topics of the shape."""

    def __init__(self, world: World, shape: Shape) -> None:
        self.world = world
        self.shape = shape
        self.network = Network(world)
        self.zookeeper = ZooKeeperService(world, self.network)
        self.history = History()
        self.addresses = {number: (f"broker-{number}", PORT) for number in range(1, shape.brokers + 1)}
        self.brokers = {number: self._make_broker(number) for number in self.addresses}
        self.producers: list[Producer] = []
        self.consumers: list[Consumer] = []
        self.forgetful: list[SimBroker] = []
        """Brokers that lost what was not flushed and still count as in sync."""
        self.admin = Client(world, self.network, "admin", self.addresses)
        self._leaders: dict[tuple[TopicPartition, int], int] = {}
        self._watermarks: dict[tuple[TopicPartition, int, int, int], int] = {}

    def _make_broker(self, number: int) -> SimBroker:
        disk = CrashDisk(self.world.chance)
        config = self._config(number)
        broker = SimBroker(self.world, self.network, self.zookeeper, config, disk)
        broker.on_turn = self._check_turn
        return broker

    def _config(self, number: int) -> BrokerConfig:
        host, port = self.addresses[number]
        settings = {
            "broker.id": str(number),
            "listeners": f"PLAINTEXT://{host}:{port}",
            "zookeeper.connect": "zookeeper:2181",
            "zookeeper.session.timeout.ms": "3000",
            "log.dirs": f"/data-{number}",
            "replica.lag.time.max.ms": "4000",
            "auto.create.topics.enable": "false",
            "controlled.shutdown.retry.backoff.ms": "500",
            "offsets.topic.replication.factor": str(min(3, self.shape.brokers)),
            "offsets.topic.num.partitions": "3",
            "group.initial.rebalance.delay.ms": "100",
            **self.shape.settings,
        }
        file = read_broker_file(settings, host)
        assert file.config is not None, file.problems
        return file.config

    # -- beginning ---------------------------------------------------------------------------

    def start(self) -> None:
        for broker in self.brokers.values():
            broker.start()
        self.await_(self._all_registered, 20 * SECOND, "all brokers are members")
        for topic in range(self.shape.topics):
            self._create_topic(f"topic-{topic}")

    def _all_registered(self) -> bool:
        """Every broker is up, holds its registration, and knows of all the others."""
        for number, broker in self.brokers.items():
            if not broker.is_running or len(broker.node.metadata.brokers) < len(self.brokers):
                return False
            node = self.zookeeper.tree.nodes.get(f"/brokers/ids/{number}")
            session = self.zookeeper.session_of(broker)
            if node is None or session is None or node.owner != session.number:
                return False
        return True

    def _create_topic(self, name: str) -> None:
        configs = [
            CreatableTopicConfig(name="min.insync.replicas", value=str(self.shape.min_insync_replicas)),
        ]
        topic = CreatableTopic(
            name=name,
            num_partitions=self.shape.partitions,
            replication_factor=self.shape.replication_factor,
            configs=configs,
        )
        done: list[bool] = []

        def attempt() -> None:
            self.admin.refresh([], ask)

        def ask() -> None:
            if self.admin.controller < 0:
                self.admin.later(attempt)
                return
            request = CreateTopicsRequest(topics=[topic], timeout_ms=10_000)
            rpc = self.admin.rpc(self.admin.controller)
            rpc.ask(request, CREATE_TOPICS_VERSION, CreateTopicsResponse, heard)

        def heard(response: CreateTopicsResponse | None) -> None:
            code = response.topics[0].error_code if response is not None else -1
            if code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
                done.append(True)
            else:
                self.admin.later(attempt)

        attempt()
        self.await_(lambda: bool(done), 30 * SECOND, f"{name} is created")

    def partitions(self) -> list[TopicPartition]:
        return [
            TopicPartition(f"topic-{topic}", partition)
            for topic in range(self.shape.topics)
            for partition in range(self.shape.partitions)
        ]

    def start_clients(self, producers: int) -> None:
        for number in range(producers):
            partition = self.partitions()[number % len(self.partitions())]
            pace_us = self.world.between(5, 60) * MILLISECOND
            producer = Producer(
                self.world,
                self.network,
                f"producer-{number}",
                self.addresses,
                partition,
                self.history,
                pace_us,
            )
            self.producers.append(producer)
            producer.start()
        for partition in self.partitions():
            consumer = Consumer(
                self.world, self.network, f"consumer-{partition}", self.addresses, partition, self.history
            )
            self.consumers.append(consumer)
            consumer.start()

    def await_(self, condition: Callable[[], bool], limit_us: int, what: str) -> None:
        """Let time pass until that holds; too late is a violation of liveness."""
        if not self.world.run_while(lambda: not condition(), limit_us):
            raise Violation(f"stuck: after {limit_us // SECOND} s it still does not hold that {what}")

    # -- checks that run beside everything ---------------------------------------------------

    def _check_turn(self, broker: SimBroker) -> None:
        """After every turn of a broker: one leader an epoch, and watermarks that never go back."""
        number = broker.config.broker_id
        for partition in broker.node.partitions.all():
            leader = partition.leader
            if leader is None:
                continue
            epoch = int(partition.leader_epoch)
            known = self._leaders.setdefault((partition.name, epoch), number)
            if known != number:
                raise Violation(f"two leaders of {partition.name} in epoch {epoch}: {known} and {number}")
            key = (partition.name, epoch, number, broker.life)
            watermark = int(partition.log.high_watermark)
            if watermark < self._watermarks.get(key, 0):
                raise Violation(f"the watermark of {partition.name} went back to {watermark} on {number}")
            self._watermarks[key] = watermark
            if watermark > partition.log.end_offset:
                raise Violation(f"the watermark of {partition.name} is beyond the log's end on {number}")

    # -- starting again ----------------------------------------------------------------------

    def may_start(self, broker: SimBroker) -> bool:
        return not broker.is_running and not broker.is_paused and broker not in self.forgetful

    def start_when_out_of_sync(self, broker: SimBroker) -> None:
        """A broker that forgot may come back once nobody counts on what it held."""
        self.forgetful.append(broker)
        number = broker.config.broker_id

        def look() -> None:
            states = {partition: self._state(partition) for partition in self.partitions()}
            counted_on = {p: state["isr"] for p, state in states.items() if state and number in state["isr"]}
            if any(isr != [number] for isr in counted_on.values()):
                self.world.after(SECOND // 2, look)
                return
            for partition in counted_on:
                # The last replica in sync forgot: nobody can promise anything any more (KIP-966).
                self.world.tell(f"{partition} may have lost records: its last replica in sync lost power")
                self.history.unclean.add(partition)
            self.forgetful.remove(broker)
            broker.start()

        self.world.after(SECOND // 2, look)

    # -- the end -----------------------------------------------------------------------------

    def heal(self) -> None:
        """No more faults: everyone is up and can talk."""
        self.world.tell("all faults heal")
        self.network.unblock_all()
        self.network.is_slow = False
        self.zookeeper.is_up = True
        self.zookeeper.is_slow = False
        for broker in self.brokers.values():
            if broker.is_paused:
                broker.resume()
        self._keep_running()

    def _keep_running(self) -> None:
        """From now on, whoever ends is started again: some were just about to stop when all healed."""
        for broker in self.brokers.values():
            if self.may_start(broker):
                broker.start()
        self.world.after(SECOND, self._keep_running)

    def check_end(self) -> None:
        """Everything converges, and nothing that was promised is missing."""
        self.await_(self.is_whole, 90 * SECOND, "every partition has its full ISR again")
        for producer in self.producers:
            producer.is_stopped = True
        self.await_(self._producers_are_served, 60 * SECOND, "producers are served")
        self.await_(self._consumers_are_done, 30 * SECOND, "consumers read everything")
        sound = [c for c in self.consumers if c.partition not in self.history.unclean]
        self.history.check_final({consumer.partition: consumer.log for consumer in sound})
        self.await_(self._replicas_ended_equal, 30 * SECOND, "followers hold what their leaders hold")
        self._check_replicas()

    def _producers_are_served(self) -> bool:
        """Where records were lost, a producer's sequence cannot go on: nothing is asked there."""
        return all(p.is_idle or p.partition in self.history.unclean for p in self.producers)

    def _replicas(self, name: TopicPartition) -> dict[int, Log]:
        found = {number: broker.node.partitions.find(*name) for number, broker in self.brokers.items()}
        return {number: partition.log for number, partition in found.items() if partition is not None}

    def _replicas_ended_equal(self) -> bool:
        return all(
            len({log.end_offset for log in self._replicas(name).values()}) == 1 for name in self.partitions()
        )

    def is_whole(self) -> bool:
        for partition in self.partitions():
            state = self._state(partition)
            if state is None or state["leader"] < 0 or len(state["isr"]) < self.shape.replication_factor:
                return False
        return self._all_registered()

    def _state(self, partition: TopicPartition) -> dict[str, Any] | None:
        path = f"/brokers/topics/{partition.topic}/partitions/{partition.partition}/state"
        node = self.zookeeper.tree.nodes.get(path)
        return json.loads(node.data) if node is not None and node.data else None

    def _consumers_are_done(self) -> bool:
        for consumer in self.consumers:
            if consumer.partition in self.history.unclean:
                continue
            state = self._state(consumer.partition)
            if state is None or not isinstance(leader := state["leader"], int) or leader < 0:
                return False
            partition = self.brokers[leader].node.partitions.find(*consumer.partition)
            if partition is None or consumer.position < partition.log.end_offset:
                return False
        return True

    def _check_replicas(self) -> None:
        """After everything came to rest the replicas are the same, byte for byte."""
        for name in self.partitions():
            contents = {number: _bytes_of(log) for number, log in self._replicas(name).items()}
            if len(set(contents.values())) > 1:
                sizes = {number: len(data) for number, data in contents.items()}
                raise Violation(f"replicas of {name} differ: {sizes}")


def _bytes_of(log: Log) -> bytes:
    offset, parts = log.log_start_offset, []
    while offset < log.end_offset:
        piece = log.read(offset, 1 << 20, log.end_offset, True)
        assert piece is not None, "a log can be read between its start and its end"
        data = bytes(piece.buffer())
        parts.append(data)
        offset = max(header.last_offset for header in batches(data)) + 1
    return b"".join(parts)
