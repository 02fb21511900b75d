"""Applications on Kafka Streams: a group of a kind of its own, topics that it makes for itself, and state."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.launch.cluster import Cluster
from support.members.drilling import coordinator
from support.members.programs import kafka_streams
from support.processes.java_process import JavaProcess
from support.running.waiting import wait_until

LINES = 300
SETTINGS = {
    "replication.factor": "3",
    "num.standby.replicas": "1",
    "commit.interval.ms": "200",
    "session.timeout.ms": "3000",
    "heartbeat.interval.ms": "300",
    "metadata.max.age.ms": "1000",
    # The default asks for one rebalance more, ten minutes later, when a copy of the state has caught up.
    "probing.rebalance.interval.ms": "60000",
}


class Application:
    """Instances of one application, what goes in, and what comes out."""

    def __init__(self, cluster: Cluster, name: str, home: Path) -> None:
        self.name = name
        self._servers = {"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0}
        self._home = home
        self._instances: list[JavaProcess] = []
        self._written = 0
        self._found: dict[str, set[str]] = defaultdict(set)
        topics = [NewTopic(f"{name}-{end}", 3, 3) for end in ("in", "out")]
        admin = AdminClient(self._servers)
        for made in admin.create_topics(topics).values():
            made.result(30)
        self._producer = Producer({**self._servers, "acks": "all", "enable.idempotence": True})
        self._reader = Consumer(
            {**self._servers, "group.id": f"{name}-reader", "auto.offset.reset": "earliest"}
        )
        self._reader.subscribe([f"{name}-out"])

    def start(self, **more: str) -> JavaProcess:
        """One instance more, with state of its own."""
        number = len(self._instances)
        settings = {
            "application.id": self.name,
            "bootstrap.servers": self._servers["bootstrap.servers"],
            "state.dir": self._home / f"state-{number}",
            "in": f"{self.name}-in",
            "out": f"{self.name}-out",
            **SETTINGS,
            **more,
        }
        words = [f"{key}={value}" for key, value in settings.items()]
        instance = JavaProcess([*kafka_streams(), *words], self._home / f"instance-{number}.log")
        self._instances.append(instance)
        return instance

    def write(self, lines: int) -> None:
        """That many lines more, all acknowledged."""
        failures = []
        for number in range(self._written, self._written + lines):
            line = " ".join(sorted(words_of(number)))
            self._producer.produce(
                f"{self.name}-in", line, str(number), on_delivery=lambda error, _: failures.append(error)
            )
        assert self._producer.flush(60) == 0
        assert not any(failures), failures
        self._written += lines

    def has_found_all(self) -> None:
        """Wait until every word came out with all of its lines."""
        wanted: dict[str, set[str]] = defaultdict(set)
        for number in range(self._written):
            for word in words_of(number):
                wanted[word].add(str(number))

        def is_complete() -> bool:
            for message in self._reader.consume(100, 0.2):
                assert message.error() is None, message.error()
                self._found[message.key().decode()] = set(message.value().decode().split(","))
            return self._found == wanted

        wait_until(is_complete, lambda: f"{self._written} lines are found:\n{self.story()}", 120)

    def story(self) -> str:
        return "\n".join(instance.output.read_text()[-500:] for instance in self._instances)

    def close(self) -> None:
        for instance in self._instances:
            instance.kill()
        self._reader.close()


def words_of(number: int) -> set[str]:
    return {f"w{number % 17}", f"w{number % 5}"}


@contextmanager
def an_application(cluster: Cluster, name: str, home: Path) -> Iterator[Application]:
    application = Application(cluster, name, home)
    try:
        yield application
    finally:
        application.close()


@pytest.mark.full("three JVMs of Kafka Streams under a failover")
@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_an_application_outlives_its_coordinator_and_an_instance(
    cluster: Cluster, tmp_path: Path, guarantee: str
) -> None:
    settings = {"processing.guarantee": guarantee}
    with an_application(cluster, f"streams-{guarantee}", tmp_path) as application:
        first = application.start(**settings)
        application.write(LINES)
        application.has_found_all()

        dead = coordinator(cluster, application.name)
        cluster.brokers[dead].kill()
        application.write(LINES)
        second = application.start(**settings)
        wait_until(
            lambda: "state RUNNING" in second.output.read_text(), "the second instance has a share", 120
        )
        application.has_found_all()
        cluster.start_broker(dead)

        # What it knew was in its memory: the other has it from the changelog alone.
        first.kill()
        application.write(LINES)
        application.has_found_all()
        assert second.terminate() == 143, application.story()


def test_an_application_processes_exactly_once(cluster: Cluster, tmp_path: Path) -> None:
    with an_application(cluster, "exactly", tmp_path) as application:
        application.write(LINES)
        application.start(**{"processing.guarantee": "exactly_once_v2"})
        application.has_found_all()
        application.write(LINES)
        application.has_found_all()
