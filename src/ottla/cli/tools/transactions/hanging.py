"""``ottla transactions find-hanging`` and ``abort``."""

from ottla.cli.shared.options import Output
from ottla.cli.shared.refusal import CommandRefused
from ottla.cli.tools.transactions.show import leader_of, now_ms, print_table, producers_of
from ottla.client.admin.topics import describe_topics
from ottla.client.admin.transactions import (
    abort_transaction,
    describe_producers,
    describe_transaction,
    list_transactions,
)
from ottla.client.blocking.client import Client
from ottla.client.errors import BrokerError
from ottla.model.ids import TopicPartition
from ottla.wire.apis.describe_producers import ProducerState

COLUMNS = (
    "Topic",
    "Partition",
    "ProducerId",
    "ProducerEpoch",
    "CoordinatorEpoch",
    "StartOffset",
    "LastTimestamp",
    "Duration(min)",
)
PARTITIONS_PER_REQUEST = 500
MINUTE_MS = 60_000


def find(
    client: Client,
    broker: int | None,
    topic: str | None,
    partition: int | None,
    max_timeout_min: int,
    output: Output,
) -> None:
    """Transactions open longer than any may be, of which no coordinator knows that it must end them there."""
    late = [
        (where, each)
        for where, each in _open_ones(client, _places(client, broker, topic, partition))
        if now_ms() - each.last_timestamp > max_timeout_min * MINUTE_MS
    ]
    known = _covered(client, {each.producer_id for _, each in late})
    rows = [
        (
            where.topic,
            where.partition,
            each.producer_id,
            each.producer_epoch,
            each.coordinator_epoch,
            each.current_txn_start_offset,
            each.last_timestamp,
            (now_ms() - each.last_timestamp) // MINUTE_MS,
        )
        for where, each in late
        if (each.producer_id, where) not in known
    ]
    print_table(COLUMNS, rows, output)


def _places(
    client: Client, broker: int | None, topic: str | None, partition: int | None
) -> dict[int, list[TopicPartition]]:
    """The partitions to look at, by the broker to ask: the one that was named, or the leaders."""
    found: dict[int, list[TopicPartition]] = {}
    for described in client.run(describe_topics, None if topic is None else [topic]).topics:
        for row in described.partitions:
            asked = row.leader_id if broker is None else broker
            is_wanted = partition is None or row.partition_index == partition
            if is_wanted and asked >= 0 and (broker is None or broker in row.replica_nodes):
                place = TopicPartition(described.name or "", row.partition_index)
                found.setdefault(asked, []).append(place)
    if topic is not None and not found:
        raise CommandRefused(f"no partition to look at in topic '{topic}'; see `ottla topics --list`")
    return found


def _open_ones(
    client: Client, places: dict[int, list[TopicPartition]]
) -> list[tuple[TopicPartition, ProducerState]]:
    found: list[tuple[TopicPartition, ProducerState]] = []
    for broker, partitions in places.items():
        for first in range(0, len(partitions), PARTITIONS_PER_REQUEST):
            asked = partitions[first : first + PARTITIONS_PER_REQUEST]
            for where, row in client.run(describe_producers, broker, asked).items():
                found += [
                    (where, each) for each in row.active_producers if each.current_txn_start_offset >= 0
                ]
    return found


def _covered(client: Client, producer_ids: set[int]) -> set[tuple[int, TopicPartition]]:
    """The producers and partitions that a coordinator is going to end."""
    covered: set[tuple[int, TopicPartition]] = set()
    if not producer_ids:
        return covered
    listed = client.run(list_transactions, producer_ids=producer_ids)
    for row in (row for rows in listed.values() for row in rows):
        try:
            described = client.run(describe_transaction, row.transactional_id)
        except BrokerError:
            continue  # the id expired a moment ago
        for topic in described.topics:
            places = (TopicPartition(topic.topic, index) for index in topic.partitions)
            covered.update((described.producer_id, place) for place in places)
    return covered


def abort_at(client: Client, where: TopicPartition, start_offset: int) -> None:
    """End the transaction that begins at this offset."""
    for each in producers_of(client, where, None):
        if each.current_txn_start_offset == start_offset:
            abort_of(client, where, each.producer_id, each.producer_epoch, each.coordinator_epoch)
            return
    raise CommandRefused(
        f"no open transaction of {where} begins at offset {start_offset};"
        f" see `ottla transactions describe-producers --topic {where.topic} --partition {where.partition}`"
    )


def abort_of(
    client: Client, where: TopicPartition, producer_id: int, producer_epoch: int, coordinator_epoch: int
) -> None:
    """End the transaction of this producer; where no coordinator ever wrote, its epoch counts as 0."""
    client.run(
        abort_transaction,
        leader_of(client, where),
        where,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        coordinator_epoch=max(0, coordinator_epoch),
    )
