"""Kafka 4 without ZooKeeper, as a side of a benchmark: each of its processes is broker and controller."""

import struct
import subprocess
from pathlib import Path

from _sides import PRODUCTION_JVM

from support.processes.broker_process import HOST, BrokerProcess
from support.processes.java_process import JavaProcess, java_command
from support.processes.lab import kraft_jars
from support.processes.ports import free_port
from support.wire.client import WireClient

CLUSTER_ID = "b3R0bGEtYmVuY2gtMDAwMQ"
FORMAT_SECONDS_MAX = 60
DESCRIBE_QUORUM = 55


class KraftBroker(BrokerProcess):
    """One process with both roles."""

    kind = "kraft"

    def describe(self, voters: str, controller_port: int, settings: dict[str, object]) -> None:
        """All that it is told; default settings but for what is named."""
        self._props = {
            "process.roles": "broker,controller",
            "node.id": self.broker_id,
            "controller.quorum.voters": voters,
            "controller.listener.names": "CONTROLLER",
            "listeners": f"PLAINTEXT://{self.address},CONTROLLER://{HOST}:{controller_port}",
            "advertised.listeners": f"PLAINTEXT://{self.address}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": self.log_dir,
            **settings,
        }

    def command(self, settings: Path) -> list[str]:
        return java_command("kafka.Kafka", str(settings), heap="1g", flags=self._flags(), jars=kraft_jars())

    def launch(self) -> None:
        is_new = not self.log_dir.exists()
        if is_new:
            self.run_dir.mkdir(parents=True)
            settings = self.run_dir / "server.properties"
            settings.write_text("".join(f"{name}={value}\n" for name, value in self._props.items()))
            words = ("format", "-t", CLUSTER_ID, "-c", str(settings))
            command = java_command("kafka.tools.StorageTool", *words, jars=kraft_jars())
            subprocess.run(command, check=True, capture_output=True, timeout=FORMAT_SECONDS_MAX)
            self._process = JavaProcess(self.command(settings), self.log_file)
        else:
            super().launch()

    def _flags(self) -> tuple[str, ...]:
        return (*PRODUCTION_JVM, "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")


def kraft_brokers(directory: Path, count: int, **settings: object) -> list[KraftBroker]:
    """Described and not yet started."""
    brokers = [
        KraftBroker(number, "", free_port(), directory / f"kraft-{number}" / "data")
        for number in range(count)
    ]
    ports = [free_port() for _ in brokers]
    voters = ",".join(f"{number}@{HOST}:{port}" for number, port in enumerate(ports))
    for broker, port in zip(brokers, ports, strict=True):
        broker.log_dir.parent.mkdir(parents=True, exist_ok=True)
        broker.describe(voters, port, dict(settings))
    return brokers


def quorum_leader(address: str) -> int:
    """The controller in charge, asked by hand: Ottla has no such request (DescribeQuorum v0)."""
    topic = b"__cluster_metadata"
    body = bytes([2, len(topic) + 1]) + topic + b"\x02" + struct.pack(">i", 0) + b"\0\0\0"
    request = struct.pack(">hhih", DESCRIBE_QUORUM, 0, 1, -1) + b"\0" + body
    with WireClient(address) as client:
        client.send_bytes(struct.pack(">i", len(request)) + request)
        frame = client.read_frame()
    assert frame is not None, f"{address} hung up"
    behind = frame.index(topic) + len(topic) + 1  # the array of partitions follows
    number, error, leader = struct.unpack_from(">ihi", frame, behind)
    assert (number, error) == (0, 0), f"{address} does not know the quorum: {frame.hex()}"
    return int(leader)
