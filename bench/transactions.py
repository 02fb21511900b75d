"""Transactions beside Apache: rate and latency, copies, a storm of producers, the load of their states.

Three brokers a side, replication factor 3. Producers speak over bare sockets (``_transacting.py``); copies
are made with librdkafka: read, write, commit offsets and records together. Sides take turns, round by round.
The load is the time from the election of another leader of ``__transaction_state`` to its first answer.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator
from typing import Any

from _moving import move
from _sides import Side, median, settle, two_sides
from _transacting import SECONDS_MAX, Measured, Transactor, coordinator_of, coordinators, run_all
from bars import TRANSACTION_LOAD, TRANSACTION_RATE, TRANSACTION_TAIL, Bar
from confluent_kafka import Consumer, Producer, TopicPartition
from history import record

from ottla.model.ids import TopicPartition as Partition
from ottla.model.internal_topics import TRANSACTIONS_TOPIC
from ottla.wire.apis.describe_transactions import DescribeTransactionsRequest
from support.wire.client import WireClient

SOURCE, TARGET, COPIED_PARTITIONS = "source", "target", 6
SETTINGS: dict[str, object] = {
    "transaction.state.log.replication.factor": 3,
    "transaction.state.log.min.isr": 2,
    "group.initial.rebalance.delay.ms": 0,
}
STATES = Partition(TRANSACTIONS_TOPIC, 0)

Figures = dict[str, list[float]]
"""What was measured, a figure a round."""


def quantile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


# -- transactions of one size --------------------------------------------------------------------


def a_round(side: Side, name: str, records: int, partitions: int, producers: int, seconds: float) -> Measured:
    """That many producers for so long; all of them have their epoch before."""
    topic = f"parts-{partitions}"
    states, leaders = coordinators(side), side.leaders(topic)
    every = [
        Transactor(each, coordinator_of(states, each), topic, leaders, records)
        for each in (f"{name}-{number}" for number in range(producers))
    ]
    run_all([each.initialised() for each in every])
    measured = Measured()
    until = time.perf_counter() + seconds
    run_all([each.transacting(until, measured) for each in every])
    return measured


def sizes(side: Side, round_name: str, arguments: argparse.Namespace) -> Iterator[tuple[str, float]]:
    """Rates with several producers; latencies with one."""
    seconds = arguments.seconds
    for partitions in arguments.partitions:
        for records in arguments.records:
            name = f"{round_name}-{partitions}-{records}"
            found = a_round(side, name, records, partitions, arguments.producers, seconds)
            where = f"{records} x {partitions}"
            yield f"transactions/s, {where}", found.transactions / seconds
            yield f"refused as concurrent, {where}, %", 100 * found.adding[True] / found.adding.total()
            alone = a_round(side, f"{name}-alone", records, partitions, 1, seconds)
            yield f"one producer, transactions/s, {where}", alone.transactions / seconds
            yield f"commit p50, {where}, ms", quantile(alone.commit_ms, 0.5)
            yield f"commit p99, {where}, ms", quantile(alone.commit_ms, 0.99)
            yield f"EndTxn to next AddPartitions, {where}, ms", quantile(alone.next_ms, 0.5)


# -- copies --------------------------------------------------------------------------------------


def fill(side: Side, records: int) -> None:
    """The source, once."""
    producer = Producer({"bootstrap.servers": side.bootstrap, "acks": "all", "linger.ms": 5})
    for number in range(records):
        producer.produce(SOURCE, b"%0100d" % number, partition=number % COPIED_PARTITIONS)
        if number % 10_000 == 0:
            producer.poll(0)
    assert producer.flush(SECONDS_MAX) == 0


def copies_per_second(side: Side, name: str, records: int, in_one: int) -> float:
    """Consume, transform, produce: everything in the source, so many records a transaction."""
    consumer = Consumer(
        {
            "bootstrap.servers": side.bootstrap,
            "group.id": name,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        }
    )
    producer = Producer({"bootstrap.servers": side.bootstrap, "transactional.id": name, "linger.ms": 0})
    producer.init_transactions(SECONDS_MAX)
    consumer.subscribe([SOURCE])
    copied = 0
    try:
        first = consumer.consume(in_one, SECONDS_MAX)
        began = time.perf_counter()
        while copied < records:
            messages = first or consumer.consume(in_one, 1)
            first = []
            if messages:
                copied += copy(consumer, producer, messages)
        return copied / (time.perf_counter() - began)
    finally:
        consumer.close()


def copy(consumer: Consumer, producer: Producer, messages: list[Any]) -> int:
    """One transaction."""
    ends: dict[int, int] = {}
    producer.begin_transaction()
    for message in messages:
        assert message.error() is None, message.error()
        producer.produce(TARGET, message.value(), partition=message.partition())
        ends[message.partition()] = message.offset() + 1
    offsets = [TopicPartition(SOURCE, partition, end) for partition, end in ends.items()]
    producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), SECONDS_MAX)
    producer.commit_transaction(SECONDS_MAX)
    return len(messages)


# -- many producers ------------------------------------------------------------------------------


def storm(side: Side, name: str, ids: int, connections: int = 64) -> float:
    """InitProducerId of so many new transactional ids, from several connections: how many a second."""
    states = coordinators(side)
    every = [
        Transactor(each, coordinator_of(states, each), "", {}, 1)
        for each in (f"{name}-{number}" for number in range(ids))
    ]
    lanes = [one_after_another(every[lane::connections]) for lane in range(connections)]
    began = time.perf_counter()
    run_all(lanes)
    return ids / (time.perf_counter() - began)


def one_after_another(every: list[Transactor]) -> Any:
    """The producers of one lane share its connections."""
    for each in every:
        yield from each.initialised()


def state_is_there(probe: WireClient) -> bool:
    """Whether the broker answers for one of the transactional ids."""
    asked = DescribeTransactionsRequest(transactional_ids=["load-0"])
    return bool(probe.ask(asked, 0).transaction_states[0].error_code == 0)


def loads(side: Side, rounds: int) -> tuple[float, float]:
    """The median load, to and fro, and the longest silence of all."""
    seconds, silences = [], []
    for _ in range(rounds):
        leader = coordinators(side)[0]
        target = next(broker for broker in side.brokers if broker.address != leader)
        taken, silence = move(side, STATES, target, state_is_there, SECONDS_MAX)
        seconds.append(taken)
        silences.append(silence)
        settle()
    return median(seconds), max(silences)


# -- all of it -----------------------------------------------------------------------------------


def prepare(side: Side, arguments: argparse.Namespace) -> None:
    """Topics, the source's records, and a warm side."""
    for partitions in arguments.partitions:
        side.create(f"parts-{partitions}", partitions, 3)
    side.create(SOURCE, COPIED_PARTITIONS, 3)
    side.create(TARGET, COPIED_PARTITIONS, 3)
    fill(side, arguments.copied)
    for number in range(arguments.warm_rounds):
        measure(side, f"warm-{number}", arguments)


def measure(side: Side, name: str, arguments: argparse.Namespace) -> dict[str, float]:
    """One turn of one side."""
    cpu = side.cpu_seconds()
    found = dict(sizes(side, name, arguments))
    found["copy, records/s"] = copies_per_second(side, f"{name}-copy", arguments.copied, arguments.in_one)
    found["InitProducerId of new ids/s"] = storm(side, f"{name}-storm", arguments.storm)
    found["processor of the brokers, s"] = side.cpu_seconds() - cpu
    return found


def measure_loads(arguments: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Clusters of their own, with one partition for all transactional ids."""
    one = {
        **SETTINGS,
        "transaction.state.log.num.partitions": 1,
        "transaction.state.log.replication.factor": 2,
    }
    found = {}
    with two_sides(brokers=2, **one) as sides:
        for side in sides:
            storm(side, "load", arguments.loaded)
            settle(2)
            seconds, silence = loads(side, arguments.rounds)
            found[side.name] = {"load of the ids, s": seconds, "longest silence during a load, ms": silence}
    return found


def bar_of(name: str) -> Bar | None:
    """The rates of several producers and of copies, the slowest commits, the load."""
    if name.startswith("transactions/s") or name.endswith(("records/s", "ids/s")):
        return TRANSACTION_RATE
    if name.startswith("commit p99"):
        return TRANSACTION_TAIL
    return TRANSACTION_LOAD if name.startswith("load") else None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, nargs="+", default=[1, 10, 100], help="of each partition")
    parser.add_argument("--partitions", type=int, nargs="+", default=[1, 6, 30])
    parser.add_argument("--producers", type=int, default=8)
    parser.add_argument(
        "--seconds", type=float, default=3.0, help="of each size, with many producers and one"
    )
    parser.add_argument("--copied", type=int, default=20_000)
    parser.add_argument("--in-one", type=int, default=100, help="records of a copying transaction")
    parser.add_argument("--storm", type=int, default=1_000)
    parser.add_argument("--loaded", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--warm-rounds", type=int, default=2)
    arguments = parser.parse_args()
    rounds: dict[str, Figures] = {}
    with two_sides(**SETTINGS) as sides:
        for side in sides:
            prepare(side, arguments)
        for number in range(arguments.rounds):
            for side in sides:
                for name, figure in measure(side, f"round-{number}", arguments).items():
                    rounds.setdefault(side.name, {}).setdefault(name, []).append(figure)
    numbers = {side: {name: median(each) for name, each in found.items()} for side, found in rounds.items()}
    if arguments.loaded:
        for name, found in measure_loads(arguments).items():
            numbers[name].update(found)
    missed = show(numbers, arguments)
    record("transactions", {**vars(arguments), **numbers})
    return 1 if missed else 0


def show(numbers: dict[str, dict[str, float]], arguments: argparse.Namespace) -> list[str]:
    """Print both sides; the bars that are missed."""
    missed = []
    print(f"{json.dumps(vars(arguments))}\n{'':46} {'ottla':>10} {'apache':>10} {'ratio':>7}")
    for name, ours in numbers["ottla"].items():
        theirs = numbers["apache"][name]
        bar = bar_of(name)
        is_missed = bar is not None and not bar.is_met(ours, theirs)
        missed += [name] * is_missed
        ratio = f"{ours / theirs:7.2f}" if theirs else f"{'':7}"
        print(f"{name:46} {ours:10.3f} {theirs:10.3f} {ratio}{'  MISSED' * is_missed}")
    return missed


if __name__ == "__main__":
    sys.exit(main())
