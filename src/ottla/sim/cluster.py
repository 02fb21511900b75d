"""A whole cluster in one world: brokers, ZooKeeper, clients, and the checks that run beside them."""

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

from ottla.config.areas import BrokerConfig
from ottla.config.broker_file import read_broker_file
from ottla.model.ids import TopicPartition
from ottla.model.internal_topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from ottla.sim.faults.admin import Admin, Onlooker
from ottla.sim.load.churn import PREFIX as CHURNED
from ottla.sim.load.churn import Churn
from ottla.sim.load.clients import Surroundings
from ottla.sim.load.consumers import Consumer
from ottla.sim.load.group_crew import Crew
from ottla.sim.load.groups import Member
from ottla.sim.load.own_workload import (
    STRATEGIES,
    GroupReading,
    OwnMember,
    OwnProducer,
    OwnReader,
    Reading,
)
from ottla.sim.load.producers import CarelessProducer, Producer
from ottla.sim.load.transactions.crew import TransactionCrew
from ottla.sim.machine.broker import SimBroker
from ottla.sim.machine.disks import Disks
from ottla.sim.machine.network import Network
from ottla.sim.machine.zookeeper import ZooKeeperService
from ottla.sim.plan import COPIES, WRITTEN, Shape, TopicKind, TopicShape
from ottla.sim.truth.groups import GroupTruth
from ottla.sim.truth.history import History, Violation
from ottla.sim.truth.transactions import TransactionTruth
from ottla.sim.truth.turns import BROKER_PREFIX, TurnChecks
from ottla.sim.truth.znodes import ZnodeChecks
from ottla.sim.world import MILLISECOND, SECOND, World
from ottla.wire.keys import ApiKey
from ottla.znodes import paths

PORT = 9092
GROUP = "group-0"
GROUP_PARTITIONS = 4
"""How many partitions the group shares, at most."""
OWN_GROUP = "group-1"
PACE_MS = (500, 2_500)
SHIFT_US = 4 * SECOND
"""The longest time until the next check whether a new producer takes another's place."""


class Cluster:
    """Brokers 1 to n with the topics and clients of a shape."""

    def __init__(self, world: World, shape: Shape) -> None:
        self.world = world
        self.shape = shape
        self.network = Network(world)
        self.zookeeper = ZooKeeperService(world, self.network)
        self.history = History()
        self.addresses = {
            number: (f"{BROKER_PREFIX}{number}", PORT) for number in range(1, shape.brokers + 1)
        }
        self._around = Surroundings(world, self.network, self.addresses)
        self.brokers = {number: self._make_broker(number) for number in self.addresses}
        self.forgetful: list[SimBroker] = []
        """Brokers that lost what was not flushed and still count as in sync."""
        self.znodes = ZnodeChecks(world, self.zookeeper.tree, self.history, self._life_of)
        self.znodes.unclean_allowed = {t.name for t in shape.topics if t.kind is TopicKind.UNCLEAN}
        self.zookeeper.on_write = self.znodes.on_write
        self.checks = TurnChecks(
            self.brokers,
            self.history,
            self.state_of,
            lambda broker: broker in self.forgetful,
            shape.min_insync_replicas,
        )
        self.history.on_acked = self.checks.on_acked
        for broker in self.brokers.values():
            broker.on_turn = self.checks.after_turn
            broker.on_answer = self.checks.on_answer
        self.admin = Admin(self._around, "admin")
        self.onlooker = Onlooker(self._around, "onlooker")
        self.churn: Churn | None = None
        self.producers: list[Producer] = []
        self.careless: list[CarelessProducer] = []
        self.consumers: list[Consumer] = []
        self.group = GroupTruth(world, GROUP)
        self.crew = Crew(self._around, self.group, lambda: self.partitions()[:GROUP_PARTITIONS])
        self.own_producers: list[OwnProducer] = []
        self.own_readers: list[OwnReader] = []
        self.own_group = GroupReading(self.history, OWN_GROUP)
        self.own_members: list[OwnMember] = []
        self.transaction_truth = TransactionTruth(self.history)
        self.transactions = TransactionCrew(self._around, self.transaction_truth)

    @property
    def members(self) -> list[Member]:
        """The living processes of the group."""
        return self.crew.members

    def _life_of(self, number: int) -> int:
        return self.brokers[number].life if number in self.brokers else -1

    def _make_broker(self, number: int) -> SimBroker:
        config = self._config(number)
        disk = Disks(self.world.chance, tuple(config.log_management.log_dirs))
        return SimBroker(self.world, self.network, self.zookeeper, config, disk)

    def _config(self, number: int) -> BrokerConfig:
        host, port = self.addresses[number]
        directories = [f"/data-{number}-{index}" for index in range(self.shape.directories)]
        settings = {
            "broker.id": str(number),
            "listeners": f"PLAINTEXT://{host}:{port}",
            "zookeeper.connect": "zookeeper:2181",
            "zookeeper.session.timeout.ms": "3000",
            "log.dirs": ",".join(directories),
            "replica.lag.time.max.ms": "4000",
            "auto.create.topics.enable": "false",
            "controlled.shutdown.retry.backoff.ms": "500",
            "offsets.topic.replication.factor": "3",
            "offsets.topic.num.partitions": "2",
            "transaction.state.log.replication.factor": "3",
            "transaction.state.log.num.partitions": "2",
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
            "group.initial.rebalance.delay.ms": "100",
            "group.min.session.timeout.ms": "1000",
            "log.retention.check.interval.ms": "3000",
            "log.cleaner.backoff.ms": "3000",
            **self.shape.settings,
        }
        file = read_broker_file(settings, lambda: host)
        assert file.config is not None, file.problems
        return file.config

    # -- beginning ---------------------------------------------------------------------------

    def start(self) -> None:
        for broker in self.brokers.values():
            broker.start()
        self.await_(self.all_registered, 20 * SECOND, "all brokers are members")
        for topic in self.shape.all_topics:
            self._create_topic(topic)

    def _create_topic(self, topic: TopicShape) -> None:
        creation = self.admin.scripts.play(self.admin.create_topic(topic, self.shape))
        self.await_(lambda: creation.is_done, 30 * SECOND, f"{topic.name} is created")

    def start_clients(self) -> None:
        partitions = self.partitions()
        for number in range(max(self.shape.producers, len(self.shape.topics))):
            topic = self.shape.topics[number % len(self.shape.topics)]
            self._start_producer(TopicPartition(topic.name, self.world.between(0, topic.partitions - 1)))
        self.world.after(SHIFT_US, self._relieve)
        for number in range(self.shape.careless_producers):
            careless = CarelessProducer(
                self._around,
                f"careless-{number}",
                TopicPartition("topic-0", 0),
                self.history,
                self._pace_us(),
            )
            self.careless.append(careless)
            careless.start()
        for partition in partitions:
            self._start_consumer(partition)
        self._start_group()
        if self.shape.own_clients:
            self._start_own_clients([each for each in partitions if each.topic == "topic-0"])
        if self.shape.writers:
            self._start_transactions([each for each in partitions if each.topic == WRITTEN])
        if self.shape.churns:
            self.churn = Churn(self._around, self.shape, self._id_of)
            self.churn.start()

    def _pace_us(self) -> int:
        return self.world.between(*PACE_MS) * MILLISECOND

    def _start_consumer(self, partition: TopicPartition) -> None:
        consumer = Consumer(
            self._around,
            partition,
            self.kind_of(partition.topic),
            self.history,
            self.checks.is_committed,
        )
        self.consumers.append(consumer)
        consumer.start()

    def _start_producer(self, partition: TopicPartition) -> None:
        producer = Producer(
            self._around,
            f"producer-{len(self.producers)}",
            partition,
            self.history,
            self._pace_us(),
            is_keyed=self.kind_of(partition.topic) is TopicKind.COMPACTED,
        )
        self.producers.append(producer)
        producer.start()

    def _relieve(self) -> None:
        """A producer ends after its last answer, and a new one, unknown to all leaders, takes its place."""
        at_work = [producer for producer in self.producers if not producer.is_stopped]
        if not at_work:
            return
        if self.world.now_us < self.world.busy_until_us:
            tired = self.world.chance.choice(at_work)
            tired.is_stopped = True
            self._start_producer(tired.partition)
        self.world.after(self.world.between(1, SHIFT_US), self._relieve)

    def _start_group(self) -> None:
        for number in range(self.shape.members):
            self.crew.start(f"instance-{number}" if number < self.shape.static_members else None)

    def _start_own_clients(self, partitions: list[TopicPartition]) -> None:
        for number in range(2):
            name, pace_us = f"own-producer-{number}", self._pace_us()
            producer = OwnProducer(self._around, name, partitions, self.history, pace_us)
            self.own_producers.append(producer)
            producer.start()
        reader = OwnReader(self._around, partitions, self.history, self.checks.is_committed)
        self.own_readers.append(reader)
        reader.start()
        strategies = self.world.chance.choice(STRATEGIES)
        for number in range(self.shape.own_members):
            member = OwnMember(self._around, number, "topic-0", self.own_group, strategies)
            self.own_members.append(member)
            member.start()

    def _start_transactions(self, written: list[TopicPartition]) -> None:
        """A producer without transactions writes between the others' records."""
        self._start_producer(self.world.chance.choice(written))
        copies = [TopicPartition(COPIES, each.partition) for each in written]
        self.transactions.begin(self.shape.writers, self.shape.copiers, written, copies)

    def readings(self) -> list[Consumer | Reading]:
        """Who reads which partition, and how far that has come."""
        own = [reading for reader in self.own_readers for reading in reader.readings.values()]
        return [*self.consumers, *own]

    def clients(self) -> list[str]:
        """The hosts of all clients."""
        plain = (*self.producers, *self.careless, *self.consumers, *self.members)
        own = (
            *(*self.own_producers, *self.own_readers, *self.own_members),
            *(*self.transactions.programs, *self.transactions.readers),
        )
        return [*(each.host for each in plain), *(each.host for each in own), "admin"]

    def await_(self, condition: Callable[[], bool], limit_us: int, what: str) -> None:
        """Let time pass until that holds; too late is a violation of liveness."""
        if not self.world.run_while(lambda: not condition(), limit_us):
            raise Violation(f"stuck: after {limit_us // SECOND} s it still does not hold that {what}")

    # -- what there is -----------------------------------------------------------------------

    def kind_of(self, topic: str) -> TopicKind:
        """What may happen to a topic's records. Those of coordinators are compacted, by each replica in its
        own time: a clock that jumps by years makes their segments old enough to be rolled."""
        if topic in (OFFSETS_TOPIC, TRANSACTIONS_TOPIC):
            return TopicKind.COMPACTED
        return next((each.kind for each in self.shape.all_topics if each.name == topic), TopicKind.PLAIN)

    def partitions(self) -> list[TopicPartition]:
        """Those that clients work on."""
        return [
            TopicPartition(topic.name, partition)
            for topic in self.shape.all_topics
            for partition in range(topic.partitions)
        ]

    def assignments(self) -> dict[TopicPartition, list[int]]:
        """The replicas of every partition according to ZooKeeper, except of topics that come and go."""
        found: dict[TopicPartition, list[int]] = {}
        for name in sorted(self.zookeeper.tree.nodes[paths.TOPICS].children):
            topic = self.topic_of(name)
            if topic is not None and not name.startswith(CHURNED):
                for index, replicas in topic["partitions"].items():
                    found[TopicPartition(name, int(index))] = replicas
        return found

    def topic_of(self, name: str) -> dict[str, Any] | None:
        return self._znode(paths.topic(name))

    def _id_of(self, topic: str) -> str | None:
        return (self.topic_of(topic) or {}).get("topic_id")

    def state_of(self, partition: TopicPartition) -> dict[str, Any] | None:
        return self._znode(paths.partition_state(partition))

    def _znode(self, path: str) -> dict[str, Any] | None:
        node = self.zookeeper.tree.nodes.get(path)
        return json.loads(node.data) if node is not None and node.data else None

    def calls(self) -> Counter[str]:
        """How often each API was asked for, over all brokers."""
        calls: Counter[int] = Counter()
        for broker in self.brokers.values():
            calls.update(broker.calls)
        return Counter({ApiKey(key).name: count for key, count in calls.items()})

    def all_registered(self) -> bool:
        """Every broker is up, holds its registration, and knows of all the others."""
        for number, broker in self.brokers.items():
            if not broker.is_running or len(broker.node.metadata.brokers) < len(self.brokers):
                return False
            node = self.zookeeper.tree.nodes.get(paths.broker(number))
            session = self.zookeeper.session_of(broker)
            if node is None or session is None or node.owner != session.number:
                return False
        return True

    def is_whole(self) -> bool:
        """Everyone is there, and every partition has a leader and all its replicas in sync."""
        if not self.all_registered():
            return False
        for partition, replicas in self.assignments().items():
            state = self.state_of(partition)
            if state is None or state["leader"] < 0 or set(state["isr"]) != set(replicas):
                return False
        return True

    # -- starting again ----------------------------------------------------------------------

    def may_start(self, broker: SimBroker) -> bool:
        return not broker.is_running and not broker.is_paused and broker not in self.forgetful

    def start_when_out_of_sync(self, broker: SimBroker) -> None:
        """Start a broker that lost data once it is out of every ISR."""
        self.forgetful.append(broker)
        number = broker.config.broker_id

        def look() -> None:
            states = {partition: self.state_of(partition) for partition in self.assignments()}
            counted_on = {p: state["isr"] for p, state in states.items() if state and number in state["isr"]}
            if any(isr != [number] for isr in counted_on.values()):
                self.world.after(SECOND // 2, look)
                return
            for partition in counted_on:
                # The last replica in sync lost its data: nothing can be promised any more (KIP-966).
                self.world.tell(f"{partition} may have lost records: its last replica in sync forgot")
                self.history.unclean.add(partition)
                if partition.topic == OFFSETS_TOPIC:
                    self.group.is_void = self.own_group.is_void = True
                if partition.topic in (OFFSETS_TOPIC, TRANSACTIONS_TOPIC):
                    self.transaction_truth.is_void = True
            self.forgetful.remove(broker)
            broker.start()

        self.world.after(SECOND // 2, look)
