"""Why readers of committed records stop where they do: the oldest open transaction of a partition."""

from dataclasses import dataclass
from typing import Any

from ottla.client.admin.transactions import (
    describe_producers,
    describe_transaction,
    is_prepared,
    list_transactions,
)
from ottla.client.blocking.client import Client
from ottla.client.errors import ClientError
from ottla.insight.wording import time_text
from ottla.model.ids import TopicPartition


@dataclass(frozen=True, slots=True)
class Holder:
    """The transaction at the last stable offset; without a coordinator if none is going to end it here."""

    partition: str
    last_stable_offset: int
    producer_id: int
    producer_epoch: int
    last_written_ms: int
    transactional_id: str | None = None
    coordinator: int | None = None
    state: str = ""
    start_ms: int = -1
    timeout_ms: int = -1
    is_prepared: bool = False


def find_holder(client: Client, partition: TopicPartition, leader: int) -> Holder | None:
    """None while no transaction is open on the partition, or where its leader does not tell."""
    try:
        row = client.run(describe_producers, leader, [partition])[partition]
        open_ones = [each for each in row.active_producers if each.current_txn_start_offset >= 0]
        if not open_ones:
            return None
        oldest = min(open_ones, key=lambda each: each.current_txn_start_offset)
        known = _coordinated(client, oldest.producer_id, partition)
    except ClientError:
        return None
    return Holder(
        str(partition),
        oldest.current_txn_start_offset,
        oldest.producer_id,
        oldest.producer_epoch,
        oldest.last_timestamp,
        **known,
    )


def _coordinated(client: Client, producer_id: int, partition: TopicPartition) -> dict[str, Any]:
    """What a coordinator that will end it there says of it."""
    for broker, rows in client.run(list_transactions, producer_ids=[producer_id]).items():
        for row in rows:
            described = client.run(describe_transaction, row.transactional_id)
            covered = {
                TopicPartition(topic.topic, index) for topic in described.topics for index in topic.partitions
            }
            if described.producer_id == producer_id and partition in covered:
                return {
                    "transactional_id": row.transactional_id,
                    "coordinator": broker,
                    "state": described.transaction_state,
                    "start_ms": described.transaction_start_time_ms,
                    "timeout_ms": described.transaction_timeout_ms,
                    "is_prepared": is_prepared(described),
                }
    return {}


def holder_lines(holder: Holder) -> list[str]:
    """Who holds the last stable offset, since when, and what ends it."""
    who = f"producer {holder.producer_id}, epoch {holder.producer_epoch}"
    if holder.transactional_id is None:
        since = f"last written {time_text(holder.last_written_ms)}"
        name = f"a transaction of {who}, {since}"
    else:
        since = f"open since {time_text(holder.start_ms)}, coordinated by broker {holder.coordinator}"
        name = f"transaction '{holder.transactional_id}' ({who}), {since}"
    return [
        f"  readers of committed records stop at offset {holder.last_stable_offset}: {name}",
        f"      {remedy(holder)}",
    ]


def remedy(holder: Holder) -> str:
    """What ends the transaction."""
    name = holder.transactional_id
    if name is None:
        topic, _, number = holder.partition.rpartition("-")
        return (
            "no coordinator will end it; if it is not just beginning, it hangs: `ottla transactions abort"
            f" --topic {topic} --partition {number} --start-offset {holder.last_stable_offset}`"
        )
    if holder.is_prepared:
        return (
            "it is prepared, and waits for a decision: `ottla transactions complete"
            f" --transactional-id {name}` with --commit or --abort"
        )
    if holder.state != "Ongoing":
        return f"it is in state {holder.state}: its end is on the way; its coordinator logs what delays it"
    return (
        f"its coordinator aborts it after {time_text(holder.start_ms + holder.timeout_ms)}; to abort it now:"
        f" `ottla transactions force-terminate --transactional-id {name}`"
    )
