"""Prepared transactions on three brokers: no time-out ends them, nor does the death of their coordinator."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from integration.transactions.librdkafka import fresh, read_to_end
from integration.transactions.test_coordinator_dies import coordinator
from integration.transactions.test_own_client import read_committed
from ottla.client.admin.topics import a_topic, create_topics
from ottla.client.admin.transactions import describe_transaction
from ottla.client.aio import client as aio
from ottla.client.blocking.client import Client
from ottla.client.blocking.producer import Producer
from ottla.client.errors import ProducerFenced, TwoPhaseCommitRefused
from ottla.client.producing.prepared import Prepared
from ottla.launch.cluster import Cluster
from support.processes.commands import Ran, run_here
from support.running.waiting import wait_until
from support.zookeeper.chroots import Chroots

TIMEOUT_MS = 1_000


@pytest.fixture(scope="module")
def keeping(chroots: Chroots) -> Iterator[Cluster]:
    settings = {
        "transaction.two.phase.commit.enable": "true",
        "transaction.state.log.num.partitions": "3",
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
        "default.replication.factor": "3",
        "min.insync.replicas": "2",
        "zookeeper.session.timeout.ms": "2000",
    }
    with Cluster(brokers=3, settings=settings, zookeeper=chroots.make().connect) as running:
        yield running


@pytest.fixture
def client(keeping: Cluster) -> Iterator[Client]:
    for broker in keeping.brokers:
        if not broker.is_running:
            keeping.start_broker(broker.broker_id)
    with Client(keeping.bootstrap_servers) as client:
        yield client


def new_topic(client: Client) -> str:
    topic = fresh("prepared")
    client.run(create_topics, [a_topic(topic, partitions=3)])
    return topic


def written(client: Client, topic: str, name: str, *values: bytes) -> Producer:
    """A producer with an open transaction whose time-out is short."""
    producer = client.producer(transactional_id=name, transaction_timeout_ms=TIMEOUT_MS)
    producer.init_transactions()
    producer.begin_transaction()
    for number, value in enumerate(values):
        producer.send(topic, value, partition=number)
    return producer


def tool(cluster: Cluster, *words: str) -> Ran:
    return run_here("transactions", "--bootstrap-server", cluster.bootstrap_servers, *words)


def is_aborted(client: Client, name: str) -> bool:
    return client.run(describe_transaction, name).transaction_state == "CompleteAbort"


def a_time_out_passes(client: Client, topic: str) -> None:
    """Another transaction that is left alone is aborted: time-outs are being looked at."""
    name = fresh("left-alone")
    written(client, topic, name, b"left alone").flush()
    wait_until(lambda: is_aborted(client, name), "the other transaction is aborted", 30)


@pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
def test_a_prepared_transaction_outlives_its_time_out_and_its_coordinator(
    keeping: Cluster, client: Client, commit: bool
) -> None:
    topic, name = new_topic(client), fresh("payments")
    first = written(client, topic, name, b"a", b"b")
    prepared = first.prepare_transaction()
    dead = coordinator(keeping, name)
    keeping.brokers[dead].kill()
    wait_until(lambda: coordinator(keeping, name) != dead, "another broker coordinates")

    a_time_out_passes(client, topic)
    still_open = read_committed(client, topic)
    second = client.producer(transactional_id=name)
    second.init_transactions(keep_prepared=True)
    found = second.prepared
    with pytest.raises(ProducerFenced):
        first.commit_transaction()
    is_committed = second.complete_transaction(prepared if commit else Prepared(prepared.producer_id, 99))
    with second.transaction():
        second.send(topic, b"next", partition=2)

    expected = ["a", "b", "next"] if commit else ["next"]
    assert (still_open, found, is_committed) == ([], prepared, commit)
    wait_until(lambda: read_to_end(keeping.bootstrap_servers, topic) == expected, "what was decided is read")


def test_the_next_transaction_has_a_time_out_again(client: Client) -> None:
    topic, name = new_topic(client), fresh("payments")
    producer = written(client, topic, name, b"kept")
    producer.prepare_transaction()
    producer.commit_transaction()
    producer.begin_transaction()
    producer.send(topic, b"too late", partition=0)
    producer.flush()

    timeout_ms = client.run(describe_transaction, name).transaction_timeout_ms
    wait_until(lambda: is_aborted(client, name), "the second transaction is aborted", 30)

    assert (timeout_ms, read_committed(client, topic)) == (TIMEOUT_MS, ["kept"])
    with pytest.raises(ProducerFenced):
        producer.commit_transaction()


def test_a_half_written_transaction_times_out_even_if_it_is_resumed(client: Client) -> None:
    topic, name = new_topic(client), fresh("payments")
    written(client, topic, name, b"half").flush()

    second = client.producer(transactional_id=name)
    second.init_transactions(keep_prepared=True)
    wait_until(lambda: is_aborted(client, name), "the transaction is aborted", 30)

    with pytest.raises(ProducerFenced):
        second.commit_transaction()


def test_a_transaction_without_records_can_be_prepared(client: Client) -> None:
    topic, name = new_topic(client), fresh("payments")
    producer = written(client, topic, name)

    prepared = producer.prepare_transaction()
    producer.complete_transaction(prepared)
    second = client.producer(transactional_id=name)
    second.init_transactions(keep_prepared=True)

    assert second.prepared is None
    assert not second.complete_transaction(prepared)
    with second.transaction():
        second.send(topic, b"next")
    wait_until(lambda: read_committed(client, topic) == ["next"], "the next transaction is read")


@pytest.mark.parametrize("outcome", ["--commit", "--abort"])
def test_a_prepared_transaction_is_listed_and_ended_by_hand(
    keeping: Cluster, client: Client, outcome: str
) -> None:
    topic, name, open_name = new_topic(client), fresh("payments"), fresh("open")
    writer = written(client, topic, name, b"a")
    prepared = writer.prepare_transaction()
    written(client, topic, open_name, b"open").flush()

    listed = tool(keeping, "list-prepared")
    wrong = tool(keeping, "complete", "--transactional-id", name, outcome, "--prepared", "9:9")
    foreign = tool(keeping, "complete", "--transactional-id", open_name, outcome)
    undecided = tool(keeping, "complete", "--transactional-id", name)
    ended = tool(keeping, "complete", "--transactional-id", name, outcome, "--prepared", str(prepared))
    again = tool(keeping, "complete", "--transactional-id", name, outcome)

    rows = [line.split("\t") for line in listed.stdout.splitlines()]
    mine = [row for row in rows if row[0].strip() == name]
    assert [[cell.strip() for cell in row[2:4]] for row in mine] == [str(prepared).split(":")]
    assert open_name not in listed.stdout
    assert f"has prepared {prepared}, not 9:9" in wrong.stderr
    assert "has no prepared transaction" in foreign.stderr
    assert "say --commit or --abort" in undecided.stderr
    assert ended.exit_code == 0, ended.stderr
    assert "has no prepared transaction" in again.stderr
    expected = ["a"] if outcome == "--commit" else []
    wait_until(lambda: read_to_end(keeping.bootstrap_servers, topic) == expected, "what was decided is read")
    with pytest.raises(ProducerFenced):
        writer.commit_transaction()


def test_explain_names_who_holds_readers_up_and_who_was_fenced(keeping: Cluster, client: Client) -> None:
    topic, slow, waiting = new_topic(client), fresh("slow"), fresh("waiting")
    written(client, topic, slow, b"slow").flush()
    wait_until(lambda: is_aborted(client, slow), "the slow one is aborted", 30)
    free = explained(keeping, topic)
    writer = written(client, topic, waiting, b"a")
    writer.prepare_transaction()

    held = explained(keeping, topic)
    writer.commit_transaction()

    assert "readers of committed records" not in free
    assert f"stop at offset 2: transaction '{waiting}'" in held
    assert f"`ottla transactions complete --transactional-id {waiting}` with --commit or --abort" in held
    wait_until(lambda: f"transaction '{slow}'" in explained(keeping, topic), "the decision is recorded")
    assert "cause: it took longer than its time-out" in explained(keeping, topic)


def explained(cluster: Cluster, topic: str) -> str:
    ran = run_here("explain", f"{topic}-0", "--bootstrap-server", cluster.bootstrap_servers)
    assert ran.exit_code == 0, ran.stderr
    return ran.stdout


def test_whatever_is_open_can_be_terminated(keeping: Cluster, client: Client) -> None:
    topic, name = new_topic(client), fresh("payments")
    writer = written(client, topic, name, b"a")
    writer.prepare_transaction()

    ended = tool(keeping, "force-terminate", "--transactional-id", name)

    assert ended.exit_code == 0, ended.stderr
    with pytest.raises(ProducerFenced):
        writer.commit_transaction()
    assert read_committed(client, topic) == []


def test_the_asyncio_edge_prepares_too(keeping: Cluster, client: Client) -> None:
    topic, name = new_topic(client), fresh("payments")

    async def main() -> None:
        async with aio.Client(keeping.bootstrap_servers) as own:
            producer = own.producer(transactional_id=name)
            await producer.init_transactions()
            producer.begin_transaction()
            await producer.send(topic, b"kept")
            prepared = Prepared.parse(str(await producer.prepare_transaction()))
            second = own.producer(transactional_id=name)
            await second.init_transactions(keep_prepared=True)
            assert second.prepared == prepared
            assert await second.complete_transaction(prepared)

    asyncio.run(main())

    wait_until(lambda: read_committed(client, topic) == ["kept"], "what was committed is read")


def test_where_it_is_off_it_is_refused_by_name_and_nothing_is_lost(cluster: Cluster) -> None:
    with Client(cluster.bootstrap_servers) as client:
        topic, name = new_topic(client), fresh("payments")
        producer = written(client, topic, name, b"kept")

        with pytest.raises(TwoPhaseCommitRefused, match=r"set transaction\.two\.phase\.commit\.enable=true"):
            producer.prepare_transaction()
        producer.commit_transaction()

        wait_until(lambda: read_committed(client, topic) == ["kept"], "the transaction can be committed")
        with pytest.raises(TwoPhaseCommitRefused):
            client.producer(transactional_id=name).init_transactions(keep_prepared=True)
