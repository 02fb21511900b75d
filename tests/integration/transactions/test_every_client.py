"""Transactions of every kind of client: commit, abort, fencing, time-out, offsets, and what readers see."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from integration.transactions.librdkafka import committed, fresh
from ottla.launch.cluster import Cluster
from support.running.waiting import wait_until
from support.transactors.programs import KINDS, WITHOUT_ENDS, Refused, Transactor

IN_SHORT = ("ottla", "aiokafka", "kafka-python")
IN_FULL = pytest.mark.full("a JVM, Node or a program in Go for each kind of client")


@pytest.fixture(params=[pytest.param(each, marks=() if each in IN_SHORT else IN_FULL) for each in KINDS])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class Lot:
    """Programs of one kind, and a topic of theirs."""

    def __init__(self, cluster: Cluster, kind: str, home: Path, stack: ExitStack) -> None:
        self.kind = kind
        self.servers = cluster.bootstrap_servers
        self.topic = fresh(kind)
        self._home = home
        self._stack = stack
        admin = AdminClient({"bootstrap.servers": self.servers, "log_level": 0})
        admin.create_topics([NewTopic(self.topic, 3, 3)])[self.topic].result(30)

    def start(self, name: str, timeout_ms: int = 60_000) -> Transactor:
        """A producer that has its epoch."""
        program = Transactor(self.kind, self.servers, name, self._home, timeout_ms)
        self._stack.callback(program.close)
        program.does("init")
        return program

    def sends(self, value: str) -> str:
        return f"send {self.topic} 0 {value}"

    def read(self, program: Transactor, isolation: str) -> list[str]:
        return program.does("read", self.topic, isolation).split(",")

    def has_open_records(self, program: Transactor, count: int) -> bool:
        """How far the last stable offset lies behind the end, as ListOffsets tells this client, if it can."""
        if self.kind in WITHOUT_ENDS:
            return True
        ends = {each: int(program.does("end", self.topic, each)) for each in ("committed", "uncommitted")}
        return ends["uncommitted"] - ends["committed"] == count


@pytest.fixture
def lot(cluster: Cluster, kind: str, tmp_path: Path) -> Iterator[Lot]:
    with ExitStack() as stack:
        yield Lot(cluster, kind, tmp_path, stack)


def test_committed_is_seen_and_aborted_is_not(lot: Lot) -> None:
    group = fresh("group")
    producer = lot.start(fresh("payments"))

    def reads_on(offset: int) -> str:
        return f"offsets {group} {lot.topic} 0 {offset}"

    producer.transacts(lot.sends("a"), lot.sends("b"), f"send {lot.topic} 1 c", reads_on(7))
    producer.transacts(lot.sends("lost"), reads_on(9), end="abort")
    producer.does("begin")
    producer.does(*lot.sends("last").split())
    wait_until(lambda: lot.has_open_records(producer, 1), "what is open is behind the last stable offset")
    producer.does("commit")

    assert lot.read(producer, "committed") == ["a", "b", "last"]
    assert lot.read(producer, "uncommitted") == ["a", "b", "lost", "last"]
    assert wait_until(lambda: committed(lot.servers, group, lot.topic), "offsets") == {0: 7}
    wait_until(lambda: lot.has_open_records(producer, 0), "nothing stays open")


def test_a_second_producer_of_the_id_fences_the_first(lot: Lot) -> None:
    name = fresh("payments")
    first = lot.start(name)
    first.does("begin")
    first.does(*lot.sends("lost").split())

    second = lot.start(name)
    second.transacts(lot.sends("last"))

    with pytest.raises(Refused):
        first.does("commit")
    assert lot.read(second, "committed") == ["last"]


def test_a_transaction_that_takes_too_long_is_aborted(lot: Lot) -> None:
    slow, quick = lot.start(fresh("slow"), timeout_ms=1_500), lot.start(fresh("quick"))
    slow.does("begin")
    slow.does(*lot.sends("late").split())
    quick.transacts(lot.sends("last"))

    assert lot.read(quick, "committed") == ["last"], "the abort lets readers go on"
    with pytest.raises(Refused):
        slow.does("commit")
