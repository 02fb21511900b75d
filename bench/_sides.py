"""The two sides of a broker benchmark: three Ottla and three Apache brokers on one ZooKeeper."""

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from confluent_kafka.admin import AdminClient, NewTopic

from ottla.launch.embedded_zookeeper import EmbeddedZooKeeper
from ottla.launch.zookeeper.choice import APACHE
from ottla.launch.zookeeper.keeper import EmbeddedKeeper
from ottla.server.zookeeper.blocking import BlockingZooKeeper
from support.processes.apache import ApacheBroker
from support.processes.java_process import JavaProcess, java_command
from support.processes.ottla_broker import OttlaBroker
from support.running.bytecode import keep_bytecode

PRODUCTION_JVM = (
    "-Xms256m",
    "-XX:TieredStopAtLevel=4",
    "-XX:-UseSerialGC",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
)
PAGES_PER_MB = os.sysconf("SC_PAGE_SIZE") / 1e6
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


class WarmApacheBroker(ApacheBroker):
    """Apache as it runs in production: full compilation, G1, a gigabyte of heap."""

    def launch(self) -> None:
        self.run_dir.mkdir(parents=True, exist_ok=True)
        self.log_dir.mkdir(parents=True, exist_ok=True)
        settings = self.run_dir / "server.properties"
        settings.write_text("".join(f"{name}={value}\n" for name, value in self._props.items()))
        log4j = self.run_dir / "log4j.properties"
        log4j.write_text(
            "log4j.rootLogger=WARN, out\nlog4j.appender.out=org.apache.log4j.ConsoleAppender\n"
            "log4j.appender.out.layout=org.apache.log4j.PatternLayout\n"
        )
        flags = (*PRODUCTION_JVM, f"-Dlog4j.configuration=file:{log4j}")
        self._process = JavaProcess(
            java_command("kafka.Kafka", str(settings), heap="1g", flags=flags), self.log_file
        )


KINDS: dict[str, Any] = {"ottla": OttlaBroker, "apache": WarmApacheBroker}


def compare_with(clone: Path) -> str:
    """The name of a side whose brokers are Ottla's as another clone has them, in its own environment."""
    python = clone.resolve() / ".venv" / "bin" / "python"
    if not python.exists():
        sys.exit(f"{clone} has no .venv; run make setup there")

    class EarlierBroker(OttlaBroker):
        def command(self, settings: Path) -> list[str]:
            return [str(python), *super().command(settings)[1:]]

    KINDS["before"] = EarlierBroker
    return "before"


class Side:
    """One cluster of three and what its processes cost."""

    def __init__(self, name: str, brokers: list[Any]) -> None:
        self.name = name
        self.brokers = brokers
        self.bootstrap = ",".join(broker.address for broker in brokers)
        self.admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})

    def start(self) -> None:
        """Start all brokers; returns when each knows the others."""
        for broker in self.brokers:
            broker.launch()
        for broker in self.brokers:
            broker.wait_usable(frozenset(each.broker_id for each in self.brokers))

    def stop(self) -> None:
        """End all brokers, in whatever state they are."""
        for broker in self.brokers:
            broker.stop()

    def create(self, topic: str, partitions: int, replication_factor: int) -> None:
        config = {"min.insync.replicas": str(min(2, replication_factor))}
        self.admin.create_topics([NewTopic(topic, partitions, replication_factor, config=config)])[
            topic
        ].result(60)

    def delete(self, topic: str) -> None:
        self.admin.delete_topics([topic])[topic].result(60)

    def leaders(self, topic: str) -> dict[int, str]:
        """Each partition's leader, by its address."""
        cluster = self.admin.list_topics(topic, timeout=30)
        return {
            number: f"{cluster.brokers[each.leader].host}:{cluster.brokers[each.leader].port}"
            for number, each in cluster.topics[topic].partitions.items()
        }

    def memory_mb(self) -> float:
        """The largest broker's resident memory."""
        return max(_resident_pages(broker.pid) * PAGES_PER_MB for broker in self.brokers)

    def cpu_seconds(self) -> float:
        return sum(self.user_and_system())

    def user_and_system(self) -> tuple[float, float]:
        """Seconds that the brokers have computed, and that the kernel has worked for them."""
        ticks = [_cpu_ticks(broker.pid) for broker in self.brokers]
        return sum(user for user, _ in ticks) / TICKS_PER_SECOND, sum(k for _, k in ticks) / TICKS_PER_SECOND


def _resident_pages(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1])


def _cpu_ticks(pid: int) -> tuple[int, int]:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return int(fields[11]), int(fields[12])


def touch_memory(gigabytes: int = 4) -> None:
    """Let the machine hand out its pages once: the first touch of a page would be measured otherwise."""
    blocks = []
    for _ in range(gigabytes):
        block = bytearray(1 << 30)
        block[::4096] = b"x" * len(block[::4096])
        blocks.append(block)


@contextmanager
def two_sides(peer: str = "apache", brokers: int = 3, **settings: object) -> Iterator[tuple[Side, Side]]:
    """Ottla and its peer, both running, on one ZooKeeper under different chroots."""
    with running_sides(("ottla", peer), brokers, **settings) as (ottla, other):
        yield ottla, other


@contextmanager
def running_sides(
    names: Sequence[str],
    brokers: int = 3,
    *,
    is_started: bool = True,
    sync: bool = False,
    zookeeper: str = APACHE,
    **settings: object,
) -> Iterator[list[Side]]:
    """These clusters on one ZooKeeper, Apache's or the built-in keeper; with ``is_started`` false they are
    described and not yet started. With ``sync`` ZooKeeper answers when its log is on disk."""
    keep_bytecode()
    directory = Path(tempfile.mkdtemp(prefix="ottla-bench-"))
    common = {
        "offsets.topic.replication.factor": min(3, brokers),
        "auto.create.topics.enable": "false",
        "log.segment.delete.delay.ms": 100,
        "file.delete.delay.ms": 100,
        "auto.leader.rebalance.enable": "false",
        "zookeeper.session.timeout.ms": 18_000,
        **settings,
    }
    sides: list[Side] = []
    try:
        server = EmbeddedZooKeeper if zookeeper == APACHE else EmbeddedKeeper
        with server(directory / "zookeeper", sync=sync) as running:
            for name in names:
                kind = KINDS[name]
                connect = f"{running.connect}/{name}"
                with BlockingZooKeeper(connect, needs_chroot=False) as zk:
                    zk.create_chroot()
                made = [
                    kind(number, connect, None, directory / f"{name}-{number}", **common)
                    for number in range(brokers)
                ]
                sides.append(Side(name, made))
                if is_started:
                    sides[-1].start()
            yield sides
            for side in sides:
                side.stop()
    finally:
        for side in sides:
            side.stop()
        shutil.rmtree(directory, ignore_errors=True)


def median(values: list[float]) -> float:
    ordered = sorted(values)
    return ordered[len(ordered) // 2]


def settle(seconds: float = 1.0) -> None:
    """Let what a measurement left behind come to rest."""
    time.sleep(seconds)
