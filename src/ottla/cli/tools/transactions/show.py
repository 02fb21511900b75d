"""``ottla transactions list``, ``describe`` and ``describe-producers``, in Kafka's columns."""

import time
from collections.abc import Sequence
from typing import Any

import typer

from ottla.cli.shared.options import Output
from ottla.cli.shared.printing import print_rows
from ottla.cli.shared.refusal import CommandRefused
from ottla.client.admin.asking import TRANSACTION, find_coordinator, until_done
from ottla.client.admin.topics import describe_topics
from ottla.client.admin.transactions import describe_producers, describe_transaction, list_transactions
from ottla.client.blocking.client import Client
from ottla.client.errors import BrokerError
from ottla.insight.wording import joined
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.wire.apis.describe_producers import ProducerState

LISTED = ("TransactionalId", "Coordinator", "ProducerId", "TransactionState")
DESCRIBED = (
    "CoordinatorId",
    "TransactionalId",
    "ProducerId",
    "ProducerEpoch",
    "TransactionState",
    "TransactionTimeoutMs",
    "CurrentTransactionStartTimeMs",
    "TransactionDurationMs",
    "TopicPartitions",
)
PRODUCERS = (
    "ProducerId",
    "ProducerEpoch",
    "LatestCoordinatorEpoch",
    "LastSequence",
    "LastTimestamp",
    "CurrentTransactionStartOffset",
)
NONE = "None"


def list_all(client: Client, older_than_ms: int, output: Output) -> None:
    """One row each, by coordinator."""
    found = client.run(list_transactions, older_than_ms=older_than_ms)
    rows = [
        (row.transactional_id, broker, row.producer_id, row.transaction_state)
        for broker, listed in sorted(found.items())
        for row in listed
    ]
    print_table(LISTED, rows, output)


def describe_one(client: Client, transactional_id: str, output: Output) -> None:
    """One row; an id that nobody knows is an error."""
    try:
        row = client.run(describe_transaction, transactional_id)
    except BrokerError as error:
        if error.code is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            raise CommandRefused(
                f"no coordinator knows transactional id '{transactional_id}'; see `ottla transactions list`"
            ) from None
        raise
    coordinator = client.run(_coordinator, transactional_id)
    start_ms = row.transaction_start_time_ms
    times: tuple[object, object] = (NONE, NONE)
    if start_ms >= 0:
        times = start_ms, now_ms() - start_ms
    partitions = [f"{topic.topic}-{index}" for topic in row.topics for index in topic.partitions]
    shown = (
        coordinator,
        transactional_id,
        row.producer_id,
        row.producer_epoch,
        row.transaction_state,
        row.transaction_timeout_ms,
        *times,
        joined(partitions),
    )
    print_table(DESCRIBED, [shown], output)


def _coordinator(engine: Any, transactional_id: str) -> Any:
    found = yield from until_done(
        engine, "FindCoordinator", None, lambda _: find_coordinator(transactional_id, TRANSACTION)
    )
    return found.node_id


def describe_producers_of(
    client: Client, partition: TopicPartition, broker: int | None, output: Output
) -> None:
    """One row a producer."""
    rows = [
        (
            each.producer_id,
            each.producer_epoch,
            each.coordinator_epoch,
            each.last_sequence,
            each.last_timestamp,
            each.current_txn_start_offset if each.current_txn_start_offset >= 0 else NONE,
        )
        for each in producers_of(client, partition, broker)
    ]
    print_table(PRODUCERS, rows, output)


def producers_of(client: Client, partition: TopicPartition, broker: int | None) -> list[ProducerState]:
    """What a replica knows, by default the leader."""
    asked = leader_of(client, partition) if broker is None else broker
    row = client.run(describe_producers, asked, [partition])[partition]
    if row.error_code:
        raise CommandRefused(
            f"broker {asked} does not tell of {partition}: {ErrorCode(row.error_code).name};"
            f" see `ottla topics --describe --topic {partition.topic}`"
        )
    return row.active_producers


def leader_of(client: Client, partition: TopicPartition) -> int:
    """The partition's leader; without one nothing can be asked."""
    for topic in client.run(describe_topics, [partition.topic]).topics:
        for row in topic.partitions:
            if row.partition_index == partition.partition and row.leader_id >= 0:
                return row.leader_id
    raise CommandRefused(
        f"{partition} does not exist or has no leader;"
        f" see `ottla topics --describe --topic {partition.topic}`"
    )


def now_ms() -> int:
    return int(time.time() * 1000)


def print_table(header: Sequence[str], rows: Sequence[Sequence[object]], output: Output) -> None:
    """As Kafka's tool prints it: cells padded, each followed by a tab."""
    if output is not Output.TABLE:
        names = [_snake(name) for name in header]
        print_rows([dict(zip(names, row, strict=True)) for row in rows], output, names)
        return
    lines = [[str(cell) for cell in row] for row in (header, *rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    for line in lines:
        typer.echo("".join(f"{cell:<{width}}\t" for cell, width in zip(line, widths, strict=True)))


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")
