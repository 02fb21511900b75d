"""kill -9 of a broker, default settings: seconds until acks=all is answered again.

Three brokers a side, in turns; replication factor 3, min.insync.replicas 2. *leader* is the death of a broker
that is not the controller, seen at a partition that it led; *controller* is the controller's death, seen at a
partition that another broker leads; *both* is the same death, seen at a partition that it led. One
client for all sides: bare sockets, which ask the living brokers for the leader every few milliseconds.
"""

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from _kraft import kraft_brokers, quorum_leader
from _sides import Side, median, running_sides
from bars import CRASH
from confluent_kafka.admin import NewTopic
from history import record

from ottla.client.admin.cluster import elect_leaders
from ottla.client.blocking.client import Client
from ottla.records.builder import build_batch
from ottla.records.record import Record
from ottla.server.zookeeper.blocking import BlockingZooKeeper
from ottla.wire.apis.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.apis.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.znodes import paths
from ottla.znodes.codec import decode_controller
from support.wire.client import WireClient

TOPIC = "crashed"
ASSIGNMENT = [[0, 1, 2], [1, 2, 0], [2, 0, 1]]
ASK_AGAIN_S = 0.002
LIMIT_S = 120.0
METADATA_VERSION, PRODUCE_VERSION = 9, 9
ASK = MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)])
DEATHS = ("leader", "controller", "both")


class Cluster:
    """One side's brokers, to be killed and started again."""

    def __init__(self, side: Side, controller: Callable[[], int]) -> None:
        self.side = side
        self._controller = controller

    def prepare(self) -> None:
        config = {"min.insync.replicas": "2"}
        topic = NewTopic(TOPIC, 3, replica_assignment=ASSIGNMENT, config=config)
        self.side.admin.create_topics([topic])[TOPIC].result(60)
        self._until_whole()

    def round(self) -> dict[str, float]:
        """A leader dies and comes back, then the controller."""
        governing = self._controller()
        led, _ = self._die((governing + 1) % 3)
        both, followed = self._die(self._controller())
        return {"leader": led, "controller": followed, "both": both}

    def _die(self, victim: int) -> tuple[float, float]:
        """Seconds of the partition that it led, and of one that it followed."""
        survivors = {b.broker_id: b.address for b in self.side.brokers if b.broker_id != victim}
        with ExitStack() as stack:
            pool = stack.enter_context(ThreadPoolExecutor(2))
            probes = [Probe(stack, survivors, partition) for partition in (victim, (victim + 1) % 3)]
            probes[1].warm_up()
            started = time.perf_counter()
            os.kill(self.side.brokers[victim].pid, signal.SIGKILL)
            led, followed = pool.map(lambda probe: probe.answered() - started, probes)
        self.side.brokers[victim].kill()
        self.side.brokers[victim].restart()
        self._until_whole()
        return led, followed

    def _until_whole(self) -> None:
        """Every replica in sync everywhere, every partition at its first replica."""
        until(lambda: self._shows(lambda row: len(row.isr_nodes) == 3))
        with Client(self.side.bootstrap) as client:
            client.run(elect_leaders)
        until(lambda: self._shows(lambda row: row.leader_id == row.replica_nodes[0]))

    def _shows(self, holds: Callable[[Any], bool]) -> bool:
        try:
            for broker in self.side.brokers:
                with WireClient(broker.address) as client:
                    rows = client.ask(ASK, METADATA_VERSION).topics[0].partitions
                if len(rows) != 3 or not all(holds(row) for row in rows):
                    return False
        except (OSError, AssertionError):  # It starts, or ends, at this moment.
            return False
        return True


class Probe:
    """Writes to one partition, wherever it is led; its connections to the survivors stand beforehand."""

    def __init__(self, stack: ExitStack, survivors: dict[int, str], partition: int) -> None:
        self._clients = {
            number: stack.enter_context(WireClient(address)) for number, address in survivors.items()
        }
        self._partition = partition
        batch = bytes(build_batch([Record(b"key", b"value")]))
        rows = [PartitionProduceData(index=partition, records=batch)]
        self._write = ProduceRequest(
            acks=-1, timeout_ms=60_000, topic_data=[TopicProduceData(name=TOPIC, partition_data=rows)]
        )
        for client in self._clients.values():
            client.ask(ASK, METADATA_VERSION)

    def warm_up(self) -> None:
        self.answered()

    def answered(self) -> float:
        """When a record was acknowledged by all in sync."""
        give_up = time.monotonic() + LIMIT_S
        while time.monotonic() < give_up:
            for client in self._clients.values():
                leader = self._leader(client)
                if leader in self._clients and self._is_written(self._clients[leader]):
                    return time.perf_counter()
            time.sleep(ASK_AGAIN_S)
        raise TimeoutError(f"nobody takes records of partition {self._partition}")

    def _leader(self, client: WireClient) -> int:
        rows = client.ask(ASK, METADATA_VERSION).topics[0].partitions
        return next((int(row.leader_id) for row in rows if row.partition_index == self._partition), -1)

    def _is_written(self, leader: WireClient) -> bool:
        answer = leader.ask(self._write, PRODUCE_VERSION)
        return bool(answer.responses[0].partition_responses[0].error_code == 0)


def until(holds: Callable[[], bool]) -> None:
    give_up = time.monotonic() + LIMIT_S
    while not holds():
        assert time.monotonic() < give_up, "it takes too long"
        time.sleep(0.05)


@contextmanager
def clusters(names: list[str]) -> Iterator[list[Cluster]]:
    """These sides, all running; default settings, but that leaders stay where they were put."""
    settings = {"auto.leader.rebalance.enable": "false", "offsets.topic.replication.factor": 3}
    directory = Path(tempfile.mkdtemp(prefix="ottla-crash-"))
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, directory, ignore_errors=True)
        made = []
        with_zookeeper = [name for name in names if name != "kraft"]
        for side in stack.enter_context(running_sides(with_zookeeper, sync=True)) if with_zookeeper else []:
            zk = stack.enter_context(BlockingZooKeeper(side.brokers[0].zk_connect))
            made.append(Cluster(side, lambda zk=zk: governing(zk)))  # type: ignore[misc]
        if "kraft" in names:
            side = Side("kraft", kraft_brokers(directory, 3, **settings))
            stack.callback(side.stop)
            side.start()
            made.append(Cluster(side, lambda: quorum_leader(side.brokers[0].address)))
        yield made


def governing(zk: BlockingZooKeeper) -> int:
    until(lambda: zk.exists(paths.CONTROLLER) is not None)
    return int(decode_controller(zk.get(paths.CONTROLLER).data).broker)


def main() -> int:
    """Measure, compare with the bars, keep; exit code 1 when a bar was missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=30, help="deaths of each kind")
    parser.add_argument("--peer-rounds", type=int, default=3, help="of the others, who need longer")
    parser.add_argument("--sides", default="ottla,apache,kraft")
    arguments = parser.parse_args()
    names = arguments.sides.split(",")
    found: dict[str, dict[str, list[float]]] = {name: {death: [] for death in DEATHS} for name in names}
    with clusters(names) as made:
        for cluster in made:
            cluster.prepare()
        for number in range(arguments.rounds):
            for cluster in made:
                if cluster.side.name == "ottla" or number < arguments.peer_rounds:
                    measure(cluster, found[cluster.side.name], number)
    numbers: dict[str, Any] = {name: figures(deaths) for name, deaths in found.items()}
    record("crash", {"rounds": arguments.rounds, "peer_rounds": arguments.peer_rounds, **numbers})
    return tell(numbers)


def measure(cluster: Cluster, found: dict[str, list[float]], number: int) -> None:
    for death, seconds in cluster.round().items():
        found[death].append(round(seconds, 3))
        print(f"{number} {cluster.side.name} {death}: {seconds:.3f}", file=sys.stderr, flush=True)


def figures(deaths: dict[str, list[float]]) -> dict[str, dict[str, float]]:
    return {death: {"median": median(times), "worst": max(times)} for death, times in deaths.items() if times}


def tell(numbers: dict[str, Any]) -> int:
    missed = 0
    print(f"{'seconds':<24}{'median':>8}{'worst':>8}")
    for name, deaths in numbers.items():
        for death, found in deaths.items():
            is_missed = name == "ottla" and not all(CRASH[of].is_met(found[of]) for of in CRASH)
            missed += is_missed
            print(
                f"{name:<8}{death:<16}{found['median']:>8.3f}{found['worst']:>8.3f}{'  MISSED' * is_missed}"
            )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
