"""Keys and values of ``__transaction_state``."""

from ottla.coordinator.shard import Producer, StoredRecord
from ottla.coordinator.txn.states import TransactionState
from ottla.coordinator.txn.transaction import NO_EPOCH, StoredTransaction
from ottla.model.errors import MalformedRequest
from ottla.model.ids import TopicPartition
from ottla.wire.stored import (
    TRANSACTION_LOG_KEY_VERSION,
    PartitionsSchema,
    TransactionLogKey,
    TransactionLogValue,
    decode_stored,
    encode_stored,
)

VALUE_VERSION = 0
RESUMED_VERSION = 1
"""The first that can say who resumed a transaction. Kafka 3.9 reads it, and passes that over."""


def state_record(transactional_id: str, stored: StoredTransaction) -> StoredRecord:
    """The state of a transaction. As in Kafka, an empty one has no list of partitions at all."""
    is_empty = stored.state is TransactionState.EMPTY
    version = VALUE_VERSION
    value = TransactionLogValue(
        producer_id=stored.producer_id,
        producer_epoch=stored.epoch,
        transaction_timeout_ms=stored.timeout_ms,
        transaction_status=stored.state,
        transaction_partitions=None if is_empty else _by_topic(stored.partitions),
        transaction_last_update_timestamp_ms=stored.last_update_ms,
        transaction_start_timestamp_ms=stored.start_ms,
    )
    if stored.resumed_by is not None:
        version = RESUMED_VERSION
        value.next_producer_id, value.next_producer_epoch = stored.resumed_by
    return StoredRecord(_key(transactional_id), encode_stored(value, version))


def tombstone(transactional_id: str) -> StoredRecord:
    return StoredRecord(_key(transactional_id), None)


def _key(transactional_id: str) -> bytes:
    return encode_stored(TransactionLogKey(transactional_id=transactional_id), TRANSACTION_LOG_KEY_VERSION)


def _by_topic(partitions: frozenset[TopicPartition]) -> list[PartitionsSchema]:
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        topics.setdefault(topic, []).append(partition)
    return [PartitionsSchema(topic=name, partition_ids=tuple(ids)) for name, ids in topics.items()]


def read_state(value: bytes) -> StoredTransaction:
    """The value of a record; raises MalformedRequest if it cannot be read or names an unknown state."""
    stored = decode_stored(TransactionLogValue, value)
    try:
        state = TransactionState(stored.transaction_status)
    except ValueError:
        raise MalformedRequest(f"a transaction in state {stored.transaction_status}") from None
    resumed_by = Producer(stored.next_producer_id, stored.next_producer_epoch)
    return StoredTransaction(
        producer_id=stored.producer_id,
        epoch=stored.producer_epoch,
        timeout_ms=stored.transaction_timeout_ms,
        state=state,
        last_update_ms=stored.transaction_last_update_timestamp_ms,
        start_ms=stored.transaction_start_timestamp_ms,
        partitions=frozenset(
            TopicPartition(each.topic, partition)
            for each in stored.transaction_partitions or []
            for partition in each.partition_ids
        ),
        resumed_by=resumed_by if resumed_by.epoch != NO_EPOCH else None,
    )
