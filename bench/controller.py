"""The control plane: Ottla's and Apache's controllers, three brokers, RF 3, one ZooKeeper, side by side.

All times are seconds. A crash's session time-out is not in them: the dead broker's znode is removed at once.
``--rows`` chooses: *life* is a topic of ``--partitions`` partitions from its creation on, *znodes* a failover
over ``--znodes`` partitions whose replicas are on absent brokers, *start* three brokers until a first record.
"""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from _sides import Side, compare_with, median, running_sides, settle
from bars import CONTROLLER_LIFE, CONTROLLER_MEMORY_MB, CONTROLLER_START, CONTROLLER_ZNODES, Bar
from history import record

from ottla.client.admin.cluster import elect_leaders
from ottla.client.admin.topics import a_topic, create_topics, describe_topics
from ottla.client.blocking.client import Client
from ottla.client.errors import ClientError
from ottla.model.ids import NO_LEADER, BrokerId, LeaderEpoch, TopicId, TopicPartition
from ottla.model.partition_state import LeaderAndIsr, ReplicaAssignment
from ottla.server.zookeeper.blocking import BlockingZooKeeper, ZooKeeperRefused
from ottla.znodes import paths
from ottla.znodes.codec import TopicNode, decode_controller, encode_partition_state, encode_topic
from ottla.zookeeper.ops import Create, WriteOp, ZkCode

TOPIC = "many"
LIMIT_S = 300.0
ABSENT = tuple(BrokerId(number) for number in (901, 902, 903))
PARTITIONS_A_TOPIC = 1_000

Numbers = dict[str, float]


class Bench:
    """One side's cluster, measured step by step."""

    def __init__(self, side: Side, partitions: int) -> None:
        self.side = side
        self.partitions = partitions
        self.zk = BlockingZooKeeper(side.brokers[0].zk_connect).open()

    def close(self) -> None:
        self.zk.close()

    def life(self) -> Numbers:
        """A topic of many partitions, and everything that can happen to its leaders."""
        numbers: Numbers = {}

        def note(measure: str, value: float) -> None:
            numbers[measure] = value
            print(f"  {self.side.name} {measure}: {value:.2f}", file=sys.stderr, flush=True)

        note("create topic", self.timed(self.create_topic))
        settle(5)
        note("memory of a broker, MB", self.side.memory_mb())
        note("controller failover", self.timed(self.fail_over))
        settle(2)
        victim = self.some_follower_of_the_controller()
        note("leaders moved after a crash", self.crash(victim))
        settle(2)
        note("restart to full ISR", self.restart(victim))
        settle(2)
        note("preferred election of a third", self.timed(self.prefer))
        settle(2)
        note("controlled shutdown", self.timed(lambda: self.side.brokers[victim].shut_down()))
        return numbers

    # -- steps ---------------------------------------------------------------------------------

    def create_topic(self) -> None:
        with Client(self.side.bootstrap) as client:
            topic = a_topic(TOPIC, partitions=self.partitions, replication_factor=3)
            result = client.run(create_topics, [topic], timeout_ms=int(LIMIT_S * 1000))[0]
            # A client whose patience is shorter than that asks again, and is told that the topic is there.
            assert result.error_code in (0, 7, 36), result
        for broker in self.side.brokers:
            self.until_knows(broker, lambda row: len(row.isr_nodes) == 3)

    def fail_over(self) -> None:
        self.zk.delete(paths.CONTROLLER)
        until(lambda: self.zk.exists(paths.CONTROLLER) is not None)
        name = f"after-failover-{time.monotonic_ns()}"
        until(lambda: self.creates(name))

    def creates(self, name: str) -> bool:
        try:
            with Client(self.side.bootstrap) as client:
                topic = a_topic(name, partitions=1, replication_factor=1)
                answer = client.run(create_topics, [topic], timeout_ms=int(LIMIT_S * 1000))
                return answer[0].error_code in (0, 36)
        except ClientError:
            return False

    def some_follower_of_the_controller(self) -> int:
        controller = int(decode_controller(self.zk.get(paths.CONTROLLER).data).broker)
        return next(b.broker_id for b in self.side.brokers if b.broker_id != controller)

    def crash(self, victim: int) -> float:
        self.side.brokers[victim].kill()
        started = time.perf_counter()
        try:
            self.zk.delete(paths.broker(victim))
        except ZooKeeperRefused as refused:
            if refused.code is not ZkCode.NO_NODE:  # The victim's guard may be quicker.
                raise
        for broker in self.side.brokers:
            if broker.broker_id != victim:
                self.until_knows(broker, lambda row: row.leader_id not in (-1, victim))
        return time.perf_counter() - started

    def restart(self, victim: int) -> float:
        started = time.perf_counter()
        self.side.brokers[victim].launch()
        for broker in self.side.brokers:
            self.until_knows(broker, lambda row: len(row.isr_nodes) == 3)
        return time.perf_counter() - started

    def prefer(self) -> None:
        with Client(self.side.bootstrap) as client:
            client.run(elect_leaders, timeout_ms=int(LIMIT_S * 1000))
        for broker in self.side.brokers:
            self.until_knows(broker, lambda row: row.leader_id == row.replica_nodes[0])

    def write_znodes(self, count: int) -> None:
        """Topics whose brokers are gone for good, as a controller would have left them."""
        state = encode_partition_state(LeaderAndIsr(NO_LEADER, LeaderEpoch(1), ABSENT[:1], 1, 1))
        for number in range(count // PARTITIONS_A_TOPIC):
            name = f"absent-{number}"
            held = {index: ReplicaAssignment(ABSENT) for index in range(PARTITIONS_A_TOPIC)}
            node = TopicNode(TopicId((1_000 + number).to_bytes(16, "little")), held)
            self.zk.multi([Create(paths.topic(name), encode_topic(node))])
            self.zk.multi([Create(paths.topic_partitions(name))])
            ops: list[WriteOp] = []
            for index in held:
                key = TopicPartition(name, index)
                ops += [Create(paths.topic_partition(key)), Create(paths.partition_state(key), state)]
            self.zk.multi(ops)

    # -- seeing --------------------------------------------------------------------------------

    def until_knows(self, broker: Any, holds: Callable[[Any], bool]) -> None:
        """Until this broker's own answer shows that of every partition. Asking must not be the load."""
        give_up = time.monotonic() + LIMIT_S
        while True:
            asked = time.monotonic()
            if self.knows(broker, holds):
                return
            assert time.monotonic() < give_up, f"broker {broker.broker_id} takes too long"
            time.sleep(max(0.02, 2 * (time.monotonic() - asked)))

    def knows(self, broker: Any, holds: Callable[[Any], bool]) -> bool:
        try:
            with Client(broker.address) as client:
                answer = client.run(describe_topics, [TOPIC], timeout_ms=5_000)
        except ClientError:
            return False
        rows = answer.topics[0].partitions if answer.topics else []
        return len(rows) == self.partitions and all(holds(row) for row in rows)

    @staticmethod
    def timed(run: Callable[[], object]) -> float:
        started = time.perf_counter()
        run()
        return time.perf_counter() - started


def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition that costs little to look at."""
    give_up = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < give_up, "it takes too long"
        time.sleep(0.02)


# -- the rows ----------------------------------------------------------------------------------


def life(sides: list[str], partitions: int) -> dict[str, Numbers]:
    """One side after the other, each with the machine to itself."""
    return each(sides, lambda side: Bench(side, partitions), Bench.life)


def znodes(sides: list[str], count: int) -> dict[str, Numbers]:
    """Failover over partitions that are nothing but znodes."""

    def measure(bench: Bench) -> Numbers:
        bench.write_znodes(count)
        assert bench.creates("before-failover"), "the controller knows the topics"
        settle(5)
        return {"controller failover": bench.timed(bench.fail_over)}

    return each(sides, lambda side: Bench(side, count), measure)


def start(sides: list[str], rounds: int) -> dict[str, Numbers]:
    """Brokers from nothing, ZooKeeper running, until a record is acknowledged by three of them."""
    results: dict[str, Numbers] = {}
    for name in sides:
        times = []
        for _ in range(rounds):
            with running_sides([name], is_started=False) as (side,):
                times.append(Bench.timed(lambda side=side: first_record(side)))
        _add(results, name, {"start to first record": median(times)})
    return results


def each(
    names: list[str], describe: Callable[[Side], Bench], measure: Callable[[Bench], Numbers]
) -> dict[str, Numbers]:
    """One side after the other on the same ZooKeeper, each with the machine to itself."""
    results: dict[str, Numbers] = {}
    with running_sides(names, is_started=False) as sides:
        for side in sides:
            side.start()
            bench = describe(side)
            _add(results, side.name, measure(bench))
            bench.close()
            side.stop()
    return results


def first_record(side: Side) -> None:
    for broker in side.brokers:
        broker.launch()
    until(lambda: creates_replicated(side))
    with Client(side.bootstrap) as client:
        producer = client.producer()
        producer.wait(producer.send("first", b"record"))


def creates_replicated(side: Side) -> bool:
    try:
        with Client(side.bootstrap) as client:
            topic = a_topic("first", partitions=1, replication_factor=3)
            return client.run(create_topics, [topic], timeout_ms=10_000)[0].error_code in (0, 36)
    except ClientError:
        return False


def _add(results: dict[str, Numbers], side: str, numbers: Numbers) -> None:
    for measure, value in numbers.items():
        results.setdefault(measure, {})[side] = value


def report(title: str, results: dict[str, Numbers], bar: Bar | None) -> list[str]:
    """Print the rows; returns those that miss the bar."""
    missed = []
    peer = "before" if any("before" in by for by in results.values()) else "apache"
    print(f"{title:36} {'ottla':>10} {peer:>10} {'ratio':>7}", flush=True)
    for measure, by in results.items():
        ratio = by["ottla"] / by[peer] if len(by) == 2 else float("nan")
        held = CONTROLLER_MEMORY_MB if bar and "MB" in measure else bar
        is_judged = by.keys() == {"ottla", "apache"}
        is_missed = held is not None and is_judged and not held.is_met(by["ottla"], by["apache"])
        cells = " ".join(f"{by[name]:10.2f}" if name in by else f"{'':10}" for name in ("ottla", peer))
        print(f"{measure:36} {cells} {ratio:7.3f}{'  MISSED' * is_missed}", flush=True)
        missed += [measure] * is_missed
    if peer == "apache" and all(len(by) == 2 for by in results.values()):
        record(f"controller {title}", results)
    return missed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", nargs="+", choices=["life", "znodes", "start"], default=["life"])
    parser.add_argument("--partitions", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--znodes", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3, help="how often the start is repeated")
    parser.add_argument("--sides", nargs="+", choices=["ottla", "apache"], default=["ottla", "apache"])
    parser.add_argument("--against", type=Path, help="another clone of Ottla as the peer, instead of Apache")
    arguments = parser.parse_args()
    if arguments.against:
        arguments.sides = ["ottla", compare_with(arguments.against)]
    missed: list[str] = []
    if "start" in arguments.rows:
        missed += report("start", start(arguments.sides, arguments.rounds), CONTROLLER_START)
    if "life" in arguments.rows:
        for partitions in arguments.partitions:
            bar = CONTROLLER_LIFE if partitions >= 10_000 else None
            missed += report(f"{partitions} partitions", life(arguments.sides, partitions), bar)
    if "znodes" in arguments.rows:
        found = znodes(arguments.sides, arguments.znodes)
        missed += report(f"{arguments.znodes} znodes", found, CONTROLLER_ZNODES)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
