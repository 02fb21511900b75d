"""Kafka Streams with ``exactly_once_v2``: counts and joins are exact while instances and brokers die."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from integration.transactions.librdkafka import fresh
from ottla.launch.cluster import Cluster
from support.members.programs import kafka_streams
from support.processes.java_process import JavaProcess
from support.running.waiting import wait_until

LINES = 200
WORDS = 7
SETTINGS = {
    "replication.factor": "3",
    "commit.interval.ms": "100",
    "session.timeout.ms": "3000",
    "heartbeat.interval.ms": "300",
    "metadata.max.age.ms": "1000",
}
ENDS = ("in", "table", "counts", "joined")


class Application:
    """Instances of one application, what goes in, and what is committed of what comes out."""

    def __init__(self, cluster: Cluster, release: str, home: Path) -> None:
        self.name = fresh(f"exact-{release}")
        self.joined: Counter[str] = Counter()
        self.counts: dict[str, int] = {}
        self._release = release
        self._home = home
        self._servers = {"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0}
        self._instances: list[JavaProcess] = []
        self._written = 0
        # A join needs equal keys in partitions of equal numbers: Java's hash decides.
        producing = {"acks": "all", "enable.idempotence": True, "partitioner": "murmur2_random"}
        self._producer = Producer({**self._servers, **producing})
        topics = [NewTopic(f"{self.name}-{end}", 3, 3) for end in ENDS]
        admin = AdminClient(self._servers)
        for made in admin.create_topics(topics).values():
            made.result(30)
        self._reader = Consumer(
            {
                **self._servers,
                "group.id": f"{self.name}-reader",
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
            }
        )
        self._reader.subscribe([f"{self.name}-counts", f"{self.name}-joined"])

    def start(self) -> JavaProcess:
        """One instance more, with state of its own."""
        number = len(self._instances)
        settings = {
            "application.id": self.name,
            "bootstrap.servers": self._servers["bootstrap.servers"],
            "state.dir": self._home / f"state-{number}",
            **{end: f"{self.name}-{end}" for end in ENDS},
            **SETTINGS,
        }
        words = [f"{key}={value}" for key, value in settings.items()]
        command = [*kafka_streams("ExactlyOnce", self._release), *words]
        instance = JavaProcess(command, self._home / f"instance-{number}.log")
        self._instances.append(instance)
        return instance

    def fill_table(self) -> None:
        """What lines are joined with is there before them."""
        for number in range(WORDS):
            self._producer.produce(f"{self.name}-table", f"held-{number}", f"w{number}")
        assert self._producer.flush(60) == 0

    def write(self, lines: int) -> None:
        """That many lines more, all acknowledged."""
        failures: list[KafkaError | None] = []
        for number in range(self._written, self._written + lines):
            self._producer.produce(
                f"{self.name}-in",
                f"w{number % WORDS} every",
                str(number),
                on_delivery=lambda error, _: failures.append(error),
            )
        assert self._producer.flush(60) == 0
        assert not any(failures), failures
        self._written += lines

    def is_exact(self) -> None:
        """Wait until every line is counted and joined; nothing may be counted or joined twice."""
        counts = Counter(f"w{number % WORDS}" for number in range(self._written))
        counts["every"] = self._written
        joined = Counter(f"{number} held-{number % WORDS}" for number in range(self._written))

        def is_complete() -> bool:
            self._read()
            assert not self.joined - joined, f"joined twice: {self.joined - joined}"
            too_many = {word: count for word, count in self.counts.items() if count > counts[word]}
            assert not too_many, f"counted twice: {too_many}"
            return self.joined == joined and self.counts == counts

        wait_until(is_complete, lambda: f"{self._written} lines are processed:\n{self.story()}", 240)

    def _read(self) -> None:
        for message in self._reader.consume(200, 0.2):
            if message.error() is not None:
                continue  # a broker that is down; what was read is judged
            if message.topic().endswith("-joined"):
                self.joined[message.value().decode()] += 1
            else:
                self.counts[message.key().decode()] = int(message.value())

    def story(self) -> str:
        found = f"joined {self.joined.total()}, counts {self.counts}\n"
        return found + "\n".join(instance.output.read_text()[-500:] for instance in self._instances)

    def close(self) -> None:
        for instance in self._instances:
            instance.kill()
        self._reader.close()


@contextmanager
def an_application(cluster: Cluster, release: str, home: Path) -> Iterator[Application]:
    application = Application(cluster, release, home)
    try:
        yield application
    finally:
        application.close()


@pytest.mark.parametrize(
    "release",
    [
        pytest.param("streams", marks=pytest.mark.full("JVMs of Kafka Streams under failovers"), id="3.9"),
        pytest.param("streams_4", marks=pytest.mark.long, id="4.3"),
    ],
)
def test_counts_and_joins_are_exact_while_instances_and_brokers_are_killed(
    cluster: Cluster, release: str, tmp_path: Path, long_form: bool
) -> None:
    with an_application(cluster, release, tmp_path) as application:
        application.fill_table()
        instances = [application.start(), application.start()]
        application.write(LINES)
        application.is_exact()

        for round_ in range(6 if long_form else 1):
            broker = cluster.brokers[round_ % 3]
            application.write(LINES)
            broker.kill()
            application.write(LINES)
            instances.pop(0).kill()
            instances.append(application.start())
            application.write(LINES)
            application.is_exact()
            cluster.start_broker(broker.broker_id)
        application.is_exact()
