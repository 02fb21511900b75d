"""Apache Kafka 3.9.1 in ZooKeeper mode, in real processes: the outside judge, the peer of mixed clusters."""

from __future__ import annotations

import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kazoo.client import KazooClient

from support.java.class_archive import archive_flags
from support.processes.broker_process import (
    DEFAULTS,
    HOST,
    START_SECONDS_MAX,
    BrokerProcess,
    brokers_known_to,
    wait_all_usable,
)
from support.processes.java_harness import JavaError, JavaHarness, java_harness
from support.processes.java_process import JavaProcess, java_command
from support.processes.lab import kafka_jars
from support.processes.ports import free_port
from support.running.waiting import wait_until

__all__ = [
    "ApacheBroker",
    "ApacheCluster",
    "ApacheZooKeeper",
    "JavaError",
    "JavaHarness",
    "ToolRun",
    "apache_cluster",
    "brokers_known_to",
    "free_port",
    "java_harness",
    "kafka_jars",
    "run_tool",
]

LOG4J = """\
log4j.rootLogger={level}, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=[%d] %p %m (%c)%n
log4j.logger.org.apache.zookeeper=WARN
"""
BROKER_DEFAULTS = {
    **DEFAULTS,
    "num.network.threads": 2,
    "num.io.threads": 4,
    "background.threads": 2,
    "log.cleaner.dedupe.buffer.size": 4 * 1024 * 1024,
    "log.retention.check.interval.ms": 300_000,
}


class ApacheZooKeeper:
    """A ZooKeeper 3.8 server of Kafka's own jars. ``directory`` survives a restart."""

    def __init__(self, directory: Path, port: int | None = None) -> None:
        self.port = port or free_port()
        self.connect = f"{HOST}:{self.port}"
        self._directory = directory
        self._process: JavaProcess | None = None

    def start(self) -> None:
        """Start and wait until it serves."""
        self._directory.mkdir(parents=True, exist_ok=True)
        settings = self._directory / "zookeeper.properties"
        settings.write_text(
            f"dataDir={self._directory / 'data'}\nclientPort={self.port}\nclientPortAddress={HOST}\n"
            "admin.enableServer=false\nmaxClientCnxns=0\ntickTime=500\n4lw.commands.whitelist=*\n"
        )
        command = java_command(
            "org.apache.zookeeper.server.quorum.QuorumPeerMain",
            str(settings),
            flags=(*archive_flags(), *_log4j_flags(self._directory, "WARN")),
        )
        self._process = process = JavaProcess(command, self._directory / "zookeeper.log")
        wait_until(lambda: self._serves(process), "ZooKeeper answers", START_SECONDS_MAX)

    def kill(self) -> None:
        """End it without a goodbye; sessions live on when it returns in time."""
        assert self._process is not None, "ZooKeeper was never started"
        self._process.kill()

    def pause(self) -> None:
        assert self._process is not None, "ZooKeeper was never started"
        self._process.pause()

    def resume(self) -> None:
        assert self._process is not None, "ZooKeeper was never started"
        self._process.resume()

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()

    def _serves(self, process: JavaProcess) -> bool:
        assert process.is_running, f"ZooKeeper ended at start:\n{process.output.read_text()[-2000:]}"
        try:
            with closing(socket.create_connection((HOST, self.port), timeout=1)) as connection:
                connection.sendall(b"ruok")
                return connection.recv(4) == b"imok"
        except OSError:
            return False


class ApacheBroker(BrokerProcess):
    """One Apache broker."""

    kind = "apache"
    defaults = BROKER_DEFAULTS

    def __init__(
        self,
        broker_id: int,
        zk_connect: str,
        port: int | None = None,
        log_dir: Path | None = None,
        *,
        heap: str = "320m",
        log_level: str = "INFO",
        **props: object,
    ) -> None:
        super().__init__(broker_id, zk_connect, port, log_dir, **props)
        self._heap = heap
        self._log_level = log_level

    def command(self, settings: Path) -> list[str]:
        self.log_dir.mkdir(parents=True, exist_ok=True)
        flags = (*archive_flags(), *_log4j_flags(self.run_dir, self._log_level))
        return java_command("kafka.Kafka", str(settings), heap=self._heap, flags=flags)

    def restart(self, brokers: frozenset[int] | set[int] | None = None) -> None:
        """Start again after a stop or a kill, once the registration of the dead one has expired."""
        wait_until_unregistered(self.zk_connect, self.broker_id)
        self.start(brokers)


class ApacheCluster:
    """A ZooKeeper and ``size`` Apache brokers with ids from ``first_id`` on."""

    def __init__(self, directory: Path, size: int = 1, first_id: int = 1, **props: Any) -> None:
        self.zookeeper = ApacheZooKeeper(directory / "zookeeper")
        self.brokers = {
            broker_id: ApacheBroker(
                broker_id, self.zookeeper.connect, None, directory / f"broker-{broker_id}", **props
            )
            for broker_id in range(first_id, first_id + size)
        }

    @property
    def bootstrap(self) -> str:
        return ",".join(broker.address for broker in self.brokers.values())

    @property
    def zk_connect(self) -> str:
        return self.zookeeper.connect

    def start(self) -> None:
        self.zookeeper.start()
        for broker in self.brokers.values():
            broker.launch()
        wait_all_usable(self.brokers.values())

    def stop(self) -> None:
        for broker in self.brokers.values():
            broker.stop()
        self.zookeeper.stop()


@contextmanager
def apache_cluster(
    directory: Path, size: int = 1, first_id: int = 1, **props: Any
) -> Iterator[ApacheCluster]:
    """A running cluster for the length of a ``with``."""
    cluster = ApacheCluster(directory, size, first_id, **props)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


@dataclass(frozen=True, slots=True)
class ToolRun:
    """What a command-line tool said."""

    exit_code: int
    stdout: str
    stderr: str


def run_tool(main_class: str, *args: str, stdin: str = "", seconds_max: float = 90) -> ToolRun:
    """Run one of Kafka's command-line tools by its class name."""
    with tempfile.TemporaryDirectory(prefix="apache-tool-") as directory:
        flags = (*archive_flags(), *_log4j_flags(Path(directory), "WARN", target="System.err"))
        done = subprocess.run(
            java_command(main_class, *args, flags=flags),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=seconds_max,
            check=False,
            cwd=directory,
        )
    return ToolRun(done.returncode, done.stdout, done.stderr)


def wait_until_unregistered(zk_connect: str, broker_id: int, seconds_max: float = 30) -> None:
    """Wait until ``/brokers/ids/<id>`` is gone: a broker that finds its own registration refuses to start."""
    client = KazooClient(hosts=zk_connect)
    client.start(timeout=15)
    try:
        path = f"/brokers/ids/{broker_id}"
        wait_until(lambda: client.exists(path) is None, f"{path} vanishes", seconds_max)
    finally:
        client.stop()
        client.close()


def _log4j_flags(directory: Path, level: str, target: str = "System.out") -> tuple[str, ...]:
    file = directory / "log4j.properties"
    file.write_text(LOG4J.format(level=level) + f"log4j.appender.out.Target={target}\n")
    return (f"-Dlog4j.configuration=file:{file}",)
