"""The cluster under test: three ZooKeepers and several brokers, each with its own address and disk."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from chaos.network import Network
from chaos.nodes import Broker
from chaos.probe import ask_once
from chaos.workers.common import QUICK
from ottla.launch.embedded_zookeeper import EmbeddedZooKeeper, Ensemble
from support.processes.ports import free_port
from support.running.waiting import wait_until

TOPIC = "chaos"
REPLICAS = 3
START_SECONDS_MAX = 90
FIRST_BROKER, FIRST_ZOOKEEPER = 11, 21
SEGMENT_BYTES = 4 * 1024 * 1024


def broker_settings(session_ms: int) -> dict[str, object]:
    """Kafka's settings that make a loss impossible, with time-outs short enough for a test."""
    return {
        "zookeeper.session.timeout.ms": session_ms,
        "zookeeper.connection.timeout.ms": 30_000,
        "replica.lag.time.max.ms": session_ms,
        "replica.socket.timeout.ms": 4_000,
        "replica.fetch.backoff.ms": 200,
        "request.timeout.ms": 4_000,
        "controller.socket.timeout.ms": 4_000,
        "controlled.shutdown.retry.backoff.ms": 500,
        "unclean.leader.election.enable": "false",
        "min.insync.replicas": 2,
        "default.replication.factor": REPLICAS,
        "auto.create.topics.enable": "false",
        "leader.imbalance.check.interval.seconds": 15,
        "offsets.topic.replication.factor": REPLICAS,
        "offsets.topic.num.partitions": 4,
        "transaction.state.log.replication.factor": REPLICAS,
        "transaction.state.log.num.partitions": 4,
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": 2_000,
        "group.initial.rebalance.delay.ms": 0,
        "group.min.session.timeout.ms": 1_000,
        "log.segment.bytes": SEGMENT_BYTES,
        "log.retention.check.interval.ms": 5_000,
        "log.segment.delete.delay.ms": 2_000,
        "num.network.threads": 2,
        "num.io.threads": 4,
        "background.threads": 2,
        "log.cleaner.dedupe.buffer.size": 4 * 1024 * 1024,
    }


class ChaosCluster:
    """Everything that can be hurt."""

    def __init__(self, directory: Path, kinds: Sequence[str], session_ms: int, seed: int) -> None:
        self.directory = directory
        self.network = Network()
        self.session_s = session_ms / 1000
        places = [self.network.shared_place(FIRST_ZOOKEEPER + index) for index in range(3)]
        self.ensemble = Ensemble(
            directory / "zookeeper", sync=False, settings={"clientPortAddress": "0.0.0.0"}
        )
        self.network.keep_ports()
        self.zookeeper_addresses = [place.address for place in places]
        connect = ",".join(
            f"{place.address}:{member.port}"
            for place, member in zip(places, self.ensemble.members, strict=True)
        )
        settings = {**broker_settings(session_ms), "zookeeper.connect": connect}
        self.brokers = [
            Broker(
                index + 1,
                kind,
                self.network.own_place(FIRST_BROKER + index),
                free_port(),
                directory / f"broker-{index + 1}",
                settings,
                Random(f"{seed}/guards/{index}"),
            )
            for index, kind in enumerate(kinds)
        ]

    @property
    def bootstrap(self) -> str:
        return ",".join(broker.address for broker in self.brokers)

    @property
    def zookeepers(self) -> list[EmbeddedZooKeeper]:
        return self.ensemble.members

    def broker(self, number: int) -> Broker:
        return self.brokers[number - 1]

    def start(self) -> None:
        self.ensemble.start()
        for broker in self.brokers:
            broker.launch()
        everyone = {broker.number for broker in self.brokers}

        def knows_all(broker: Broker) -> bool:
            assert broker.is_running, f"{broker.name} ended at start: {broker.last_words()}"
            seen = ask_once(broker, TOPIC)
            return seen is not None and {each.node_id for each in seen.brokers} == everyone

        for broker in self.brokers:
            wait_until(lambda b=broker: knows_all(b), f"{broker.name} knows all brokers", START_SECONDS_MAX)

    def create_topic(self, partitions: int, config: dict[str, str], name: str = TOPIC) -> None:
        admin = AdminClient({"bootstrap.servers": self.bootstrap, **QUICK})
        topic = NewTopic(name, num_partitions=partitions, replication_factor=REPLICAS, config=config)
        admin.create_topics([topic])[name].result(30)

    def topics(self) -> list[frozenset[str] | None]:
        """The topics each broker knows of; None for one that does not answer."""
        answers = [ask_once(broker, None) for broker in self.brokers]
        return [
            None if answer is None else frozenset(str(topic.name) for topic in answer.topics)
            for answer in answers
        ]

    def shut_down_brokers(self) -> None:
        """Controlled shutdowns one after the other, so that what is compared afterwards is whole."""
        for broker in self.brokers:
            broker.shut_down()

    def stop(self) -> None:
        """End everything in whatever state it is."""
        for broker in self.brokers:
            broker.kill()
        for member in self.zookeepers:
            member.kill()
        self.network.close()
