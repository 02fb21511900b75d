"""What a shard writes to ``__transaction_state``, and what it makes of what others wrote."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ottla.config.areas import TransactionsConfig
from ottla.coordinator.shard import Append, Effect, KeyAndValue, Moment, Producer
from ottla.coordinator.txn.core import TransactionShard
from ottla.coordinator.txn.records import state_record, tombstone
from ottla.coordinator.txn.states import TransactionState
from ottla.coordinator.txn.transaction import StoredTransaction
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.wire.stored import (
    PartitionsSchema,
    TransactionLogKey,
    TransactionLogValue,
    decode_stored,
    encode_stored,
)

NOW = Moment(1_000, 5_000)
STORED = StoredTransaction(7, 3, 60_000, TransactionState.ONGOING, 1_000, 500, frozenset())


def a_shard(*records: KeyAndValue) -> TransactionShard:
    shard = TransactionShard(TransactionsConfig(), lambda: 7)
    shard.apply(records)
    return shard


def the_append(effects: list[Effect]) -> Append:
    (append,) = (effect for effect in effects if isinstance(effect, Append))
    return append


def value_of(append: Append) -> TransactionLogValue:
    value = append.records[0].value
    assert value is not None
    return decode_stored(TransactionLogValue, value)


def test_the_records_of_one_transaction_are_kafkas() -> None:
    """Empty has no list of partitions, Complete an empty one (KAFKA-5268)."""
    shard, owner = a_shard(), Producer(7, 0)
    written = []

    def commit(effects: list[Effect]) -> None:
        append = the_append(effects)
        written.append(value_of(append))
        following = shard.appended(append.ticket, ErrorCode.NONE, NOW)
        if any(isinstance(effect, Append) for effect in following):
            commit(following)

    commit(shard.initialise(1, "a", None, 60_000, NOW))
    commit(shard.add_partitions(2, "a", owner, [TopicPartition("t", 1), TopicPartition("t", 0)], NOW))
    commit(shard.end(3, "a", owner, NOW, is_commit=True))
    commit(shard.marked("a", [TopicPartition("t", 0), TopicPartition("t", 1)], NOW))

    both = [PartitionsSchema(topic="t", partition_ids=(0, 1))]
    rows = [
        (each.transaction_status, each.transaction_partitions, each.transaction_start_timestamp_ms)
        for each in written
    ]
    assert rows == [(0, None, -1), (1, both, 5_000), (2, both, 5_000), (4, [], 5_000)]


def test_a_record_may_take_as_long_as_its_transaction() -> None:
    append = the_append(a_shard().initialise(1, "a", None, 1_234, NOW))

    assert (append.timeout_ms, append.acks, append.producer, append.base_sequence) == (1_234, None, None, -1)


def test_of_each_id_the_last_record_counts() -> None:
    later = StoredTransaction(7, 4, 60_000, TransactionState.COMPLETE_ABORT, 2_000)

    shard = a_shard(
        state_record("a", STORED), state_record("b", STORED), state_record("a", later), tombstone("b")
    )

    assert {name: known.stored for name, known in shard.transactions.items()} == {"a": later}


def test_values_of_version_1_are_read() -> None:
    key = encode_stored(TransactionLogKey(transactional_id="a"), 0)
    value = TransactionLogValue(
        producer_id=7, producer_epoch=3, transaction_timeout_ms=60_000, transaction_status=1
    )

    shard = a_shard((key, encode_stored(value, 1)))

    assert shard.transactions["a"].stored.state is TransactionState.ONGOING


@pytest.mark.parametrize("owner", [Producer(7, 4), Producer(9, 0)])
def test_who_resumed_a_transaction_is_read_again(owner: Producer) -> None:
    resumed = replace(STORED, state=TransactionState.ONGOING, resumed_by=owner)

    record = state_record("a", resumed)

    assert a_shard(record).transactions["a"].stored == resumed
    assert (record.value or b"")[:2] == b"\0\x01"
    assert (state_record("a", replace(resumed, resumed_by=None)).value or b"")[:2] == b"\0\0"


UNREADABLE = {
    "unknown state": (
        encode_stored(TransactionLogKey("x"), 0),
        encode_stored(TransactionLogValue(transaction_status=9), 0),
    ),
    "unknown kind of key": (b"\0\x09\0\0", b"\0\0"),
    "no version": (b"", b""),
    "cut off": (encode_stored(TransactionLogKey("x"), 0), b"\0\0\0"),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_what_cannot_be_read_is_skipped(case: str) -> None:
    """Kafka stops its load there, or never ends it."""
    shard = a_shard(UNREADABLE[case], state_record("a", STORED), (None, b"no key"))

    assert list(shard.transactions) == ["a"]
    assert shard.unreadable == 1


def test_a_loaded_shard_is_restored_and_freed_in_portions() -> None:
    shard = a_shard(*(state_record(f"id-{number}", STORED) for number in range(1_200)))

    assert len(list(shard.restore())) == 2
    assert all(known.shown_start_ms == 500 for known in shard.transactions.values())
    assert [shard.free_some() for _ in range(3)] == [True, True, False]


def test_many_expired_ids_go_in_portions() -> None:
    old = StoredTransaction(7, 3, 60_000, TransactionState.EMPTY, 0)
    shard = a_shard(*(state_record(f"id-{number}", old) for number in range(1_200)))
    shard.loaded(Moment(0, 604_800_000))

    deadline_ms = shard.next_deadline_ms()
    portions = []
    while deadline_ms is not None and len(portions) < 3:
        effects = shard.tick(Moment(deadline_ms, 604_800_000))
        portions.append(len(effects))
        deadline_ms = shard.next_deadline_ms()

    assert portions == [500, 500, 200]
