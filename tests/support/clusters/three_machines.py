"""Three machines as docs/operating/machines.md describes them: run inside a network and mount namespace.

    unshare --net --mount python -m support.clusters.three_machines DIRECTORY

Each machine is a network namespace with an address and a name of its own, a ZooKeeper server and a broker
whose files are those of the page, with other directories. At the end it prints ``all well``.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from confluent_kafka import Consumer, Producer

from chaos.network import INSIDE, Network, Place
from ottla.launch.java import find_java
from ottla.launch.zookeeper.jars import zookeeper_jars
from support.processes.java_process import JavaProcess
from support.running.waiting import wait_until

PAGE = Path(__file__).resolve().parents[3] / "docs" / "operating" / "machines.md"
OTTLA = Path(sys.executable).with_name("ottla")
NAMES = ("kafka1", "kafka2", "kafka3")
EVERYBODY = ",".join(f"{name}:9092" for name in NAMES)
START_S = 120


def blocks() -> list[str]:
    """The page's examples, as they stand there."""
    return re.findall(r"^```\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def one_of(found: list[str], beginning: str) -> str:
    [block] = [block for block in found if block.startswith(beginning)]
    return block


class Machine:
    """One of the three."""

    def __init__(self, number: int, place: Place, directory: Path) -> None:
        self.number = number
        self.place = place
        self.directory = directory
        directory.mkdir()
        self.zookeeper: JavaProcess | None = None
        self.broker: JavaProcess | None = None

    def start_zookeeper(self, zoo_cfg: str) -> None:
        data = self.directory / "zookeeper"
        data.mkdir()
        (data / "myid").write_text(f"{self.number}\n")
        config = self.directory / "zoo.cfg"
        config.write_text(zoo_cfg.replace("/var/lib/zookeeper", str(data)) + "admin.enableServer=false\n")
        jars = os.pathsep.join(map(str, zookeeper_jars()))
        self.zookeeper = self._process(
            [
                *(str(find_java().executable), "-Xmx128m", "-XX:TieredStopAtLevel=1", "-cp", jars),
                *("org.apache.zookeeper.server.quorum.QuorumPeerMain", str(config)),
            ],
            "zookeeper.log",
        )

    def start_broker(self, properties: str) -> None:
        rack = "abc"[self.number - 1]
        text = (
            properties.replace("broker.id=1", f"broker.id={self.number}")
            .replace("rack-a", f"rack-{rack}")
            .replace("PLAINTEXT://kafka1", f"PLAINTEXT://kafka{self.number}")
            .replace("/var/lib/ottla", str(self.directory / "ottla"))
        )
        file = self.directory / "server.properties"
        # Here three servers of ZooKeeper start on one machine, and a silent broker shall be missed soon.
        patience = "zookeeper.connection.timeout.ms=90000\nzookeeper.session.timeout.ms=6000\n"
        file.write_text(f"{text}{patience}replica.lag.time.max.ms=6000\n")
        self.broker = self._process([str(OTTLA), "broker", str(file)], "broker.log")

    def unplug(self) -> None:
        """The cable is out: nothing leaves it, nothing reaches it."""
        subprocess.run([*self.place.prefix, "ip", "link", "set", "eth0", "down"], check=True)

    def log(self, name: str) -> str:
        return (self.directory / name).read_text(errors="replace")

    def _process(self, command: list[str], log_name: str) -> JavaProcess:
        return JavaProcess([*self.place.prefix, *command], self.directory / log_name)

    def stop(self) -> None:
        for process in (self.broker, self.zookeeper):
            if process is not None:
                process.kill()


def names_are_known(directory: Path, machines: list[Machine]) -> None:
    """Everybody's /etc/hosts, in this mount namespace alone."""
    hosts = directory / "hosts"
    lines = [f"{machine.place.address} kafka{machine.number}" for machine in machines]
    hosts.write_text("\n".join(["127.0.0.1 localhost", *lines]) + "\n")
    subprocess.run(["mount", "--bind", str(hosts), "/etc/hosts"], check=True)


def ottla(*words: str) -> str:
    done = subprocess.run([OTTLA, *words], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, f"ottla {' '.join(words)}: {done.stdout}{done.stderr}"
    return done.stdout


def live(machines: list[Machine]) -> None:
    """What the page promises."""
    found = blocks()
    for machine in machines:
        machine.start_zookeeper(one_of(found, "dataDir="))
    for machine in machines:
        machine.start_broker(one_of(found, "broker.id="))
    for machine in machines:
        wait_until(
            lambda m=machine: "listening broker=" in m.log("broker.log"), "the broker listens", START_S
        )
        assert "cannot be reached" not in machine.log("broker.log")

    ottla("topics", "--bootstrap-server", EVERYBODY, "--create", "--topic", "orders", "--partitions", "3")
    described = ottla("topics", "--bootstrap-server", EVERYBODY, "--describe", "--topic", "orders")
    assert "ReplicationFactor: 3" in described, described
    produce(range(30))
    [describe] = [line for line in one_of(found, "ottla describe").splitlines() if "describe" in line]
    screen = ottla(*describe.split()[1:])
    assert all(name in screen for name in NAMES), screen

    assert consumed(30) == set(range(30))

    machines[0].unplug()
    wait_until(lambda: leaders() <= {2, 3}, "the others lead", START_S)
    produce(range(30, 60))
    assert consumed(60) == set(range(60))


def produce(numbers: range) -> None:
    producer = Producer({"bootstrap.servers": EVERYBODY, "acks": "all", "enable.idempotence": True})
    failed: list[object] = []
    for number in numbers:
        producer.produce(
            "orders",
            str(number).encode(),
            partition=number % 3,
            on_delivery=lambda error, _: failed.append(error) if error is not None else None,
        )
    assert producer.flush(START_S) == 0
    assert not failed, failed


def leaders() -> set[int]:
    metadata = Producer({"bootstrap.servers": "kafka2:9092"}).list_topics("orders", timeout=60)
    return {partition.leader for partition in metadata.topics["orders"].partitions.values()}


def consumed(count: int) -> set[int]:
    consumer = Consumer(
        {
            "bootstrap.servers": "kafka2:9092,kafka3:9092",
            "group.id": f"g{count}",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe(["orders"])
    values: set[int] = set()

    def has_all() -> bool:
        message = consumer.poll(1)
        if message is not None and message.error() is None:
            values.add(int(message.value()))
        return len(values) == count

    wait_until(has_all, f"{count} records are read", START_S, every=0)
    consumer.close()
    return values


def main(directory: Path) -> None:
    assert os.environ.get(INSIDE) == "1", "this runs in namespaces of its own"
    network = Network()
    machines = [Machine(n, network.own_place(10 + n), directory / f"machine-{n}") for n in (1, 2, 3)]
    names_are_known(directory, machines)
    try:
        live(machines)
    finally:
        for machine in machines:
            machine.stop()
        network.close()
    sys.stdout.write("all well\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
