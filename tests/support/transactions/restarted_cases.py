"""Conversations with a restart of the broker in the middle: what the log says is all that is left.

A case is a generator; the broker is killed and started again where it yields. Before that it may write
records of any kind to ``__transaction_state``, as another coordinator could have left them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from ottla.coordinator.shard import StoredRecord
from ottla.coordinator.txn.records import state_record, tombstone
from ottla.coordinator.txn.states import TransactionState as S
from ottla.coordinator.txn.transaction import StoredTransaction
from ottla.model.ids import TopicPartition
from ottla.records.builder import build_batch
from ottla.records.record import Record
from ottla.wire.apis import delete_groups as dg
from ottla.wire.apis import find_coordinator as fc
from ottla.wire.apis import offset_delete as od
from ottla.wire.apis import produce as pr
from ottla.wire.stored import TransactionLogKey, TransactionLogValue, encode_stored
from support.groups.conversation import TOPIC
from support.running.waiting import wait_until
from support.transactions.conversation import PartitionTalk, Producer
from support.wire.client import WireClient

Run: TypeAlias = Callable[["RestartedTalk"], Iterator[None]]
LAST_EPOCH = 32_766
ALONE: Producer = Producer(920_000, 3)
STORED = StoredTransaction(ALONE.producer_id, ALONE.epoch, 60_000, S.EMPTY, 0)


@dataclass(slots=True)
class RestartedTalk(PartitionTalk):
    """Also writes to the coordinator's log."""

    def store(self, *records: StoredRecord) -> None:
        """Only Kafka's own admin client may write to an internal topic: it goes by its name."""
        batch = build_batch([Record(key, value, timestamp=now_ms()) for key, value in records])
        rows = [pr.PartitionProduceData(index=0, records=bytes(batch))]
        data = [pr.TopicProduceData(name="__transaction_state", partition_data=rows)]
        with WireClient(self.address, client_id="__admin_client") as client:
            answer = client.ask(pr.ProduceRequest(acks=-1, timeout_ms=5_000, topic_data=data), 9)
        assert answer.responses[0].partition_responses[0].error_code == 0

    def left(self, state: S, *partitions: TopicPartition, epoch: int = ALONE.epoch, **fields: int) -> None:
        """Another coordinator left the transactional id like this."""
        stored = replace(
            STORED, state=state, epoch=epoch, partitions=frozenset(partitions), last_update_ms=now_ms()
        )
        if partitions:
            stored = replace(stored, start_ms=now_ms())
        self.store(state_record(self.group, replace(stored, **fields)))
        self.me = Producer(stored.producer_id, epoch)

    def forget(self) -> None:
        """Another life of the broker, another connection."""
        self.close()
        self._clients.clear()


class RestartedCases(list[tuple[str, Run]]):
    """A list that functions enter by decoration."""

    def add(self, function: Run) -> Run:
        self.append((function.__name__.replace("_", "-"), function))
        return function


CASES = RestartedCases()


def now_ms() -> int:
    return int(time.time() * 1000)


@CASES.add
def a_claim_is_repeated_behind_a_restart(talk: RestartedTalk) -> Iterator[None]:
    """Who had the epoch before is not in the log: the repetition is fenced."""
    talk.init()
    before = talk.me
    talk.init(before)
    yield
    talk.init(before, takes=False)
    talk.init(talk.me)


@CASES.add
def an_open_transaction_with_offsets_goes_on(talk: RestartedTalk) -> Iterator[None]:
    talk.begin({TOPIC: (0,)})
    talk.produce(TOPIC, 0, 0)
    talk.add_offsets()
    talk.commit_offsets({(TOPIC, 0): 10})
    yield
    talk.describe()
    talk.fetch({TOPIC: (0,)}, require_stable=True)
    talk.ended()
    talk.fetch({TOPIC: (0,)}, require_stable=True)


@CASES.add
def a_group_deleted_with_pending_offsets(talk: RestartedTalk) -> Iterator[None]:
    talk.init()
    talk.add_offsets()
    talk.commit_offsets({(TOPIC, 0): 10})
    talk.ask(dg.DeleteGroupsRequest(groups_names=(talk.group,)), 2)
    talk.ended()
    yield
    talk.fetch({TOPIC: (0,)})


@CASES.add
def offsets_deleted_while_pending(talk: RestartedTalk) -> Iterator[None]:
    talk.init()
    talk.add_offsets()
    talk.commit_offsets({(TOPIC, 0): 10})
    rows = [od.OffsetDeleteRequestPartition(partition_index=0)]
    topics = [od.OffsetDeleteRequestTopic(name=TOPIC, partitions=rows)]
    talk.ask(od.OffsetDeleteRequest(group_id=talk.group, topics=topics), 0)
    talk.ended()
    yield
    talk.fetch({TOPIC: (0,)})


@CASES.add
def epochs_used_up_and_claimed(talk: RestartedTalk) -> Iterator[None]:
    talk.left(S.EMPTY, epoch=LAST_EPOCH)
    yield
    old = talk.me
    talk.init(old.older(), takes=False)
    talk.init(old, takes=False)
    talk.init(old, takes=False)
    talk.init()
    talk.init(old, takes=False)


@CASES.add
def epochs_used_up_and_not_claimed(talk: RestartedTalk) -> Iterator[None]:
    talk.left(S.COMPLETE_COMMIT, epoch=LAST_EPOCH)
    yield
    old = talk.me
    talk.init()
    talk.init(old, takes=False)


@CASES.add
def open_with_the_last_epoch(talk: RestartedTalk) -> Iterator[None]:
    talk.left(S.ONGOING, TopicPartition(TOPIC, 0), epoch=LAST_EPOCH, producer_id=920_001)
    yield
    talk.init(takes=False)
    talk.settle()
    talk.describe()
    talk.init()


@CASES.add
def fenced_with_the_highest_epoch(talk: RestartedTalk) -> Iterator[None]:
    talk.left(S.COMPLETE_ABORT, epoch=LAST_EPOCH + 1)
    yield
    talk.describe()
    talk.init()


@CASES.add
def prepared_to_commit_with_a_partition_that_is_gone(talk: RestartedTalk) -> Iterator[None]:
    partitions = TopicPartition(TOPIC, 1), TopicPartition("never-was", 0)
    talk.left(S.PREPARE_COMMIT, *partitions, producer_id=920_002)
    yield
    talk.settle()
    talk.describe()


@CASES.add
def prepared_to_abort(talk: RestartedTalk) -> Iterator[None]:
    talk.left(S.PREPARE_ABORT, TopicPartition(TOPIC, 1), producer_id=920_003)
    yield
    talk.settle()
    talk.describe()
    talk.end(Producer(920_003, 3), commit=False)


@CASES.add
def open_longer_than_allowed(talk: RestartedTalk) -> Iterator[None]:
    talk.left(S.ONGOING, TopicPartition(TOPIC, 1), start_ms=1, producer_id=920_004)
    yield
    talk.settle()
    talk.describe()


@CASES.add
def dead_in_the_log(talk: RestartedTalk) -> Iterator[None]:
    """No coordinator writes that: an expired id ends with a tombstone."""
    talk.left(S.DEAD)
    yield
    talk.describe()
    talk.end()


@CASES.add
def fencing_in_the_log(talk: RestartedTalk) -> Iterator[None]:
    """No coordinator writes that: a fence is stored as its abort."""
    talk.left(S.PREPARE_EPOCH_FENCE)
    yield
    talk.describe()
    talk.end()
    talk.init(takes=False)
    talk.add({TOPIC: (0,)})


@CASES.add
def a_value_of_version_1(talk: RestartedTalk) -> Iterator[None]:
    """With a tag that nobody knows yet: it is passed over."""
    value = TransactionLogValue(
        producer_id=920_005,
        producer_epoch=7,
        transaction_timeout_ms=60_000,
        transaction_status=S.COMPLETE_COMMIT,
        transaction_partitions=[],
        transaction_last_update_timestamp_ms=now_ms(),
        transaction_start_timestamp_ms=now_ms(),
    )
    encoded = encode_stored(value, 1)
    assert encoded.endswith(b"\0")
    tagged = encoded[:-1] + b"\x01\x63\x02hi"
    talk.store(StoredRecord(key_of(talk.group), tagged))
    yield
    talk.describe()
    talk.init(Producer(920_005, 7))


@CASES.add
def a_tombstone(talk: RestartedTalk) -> Iterator[None]:
    talk.left(S.EMPTY)
    talk.store(tombstone(talk.group))
    yield
    talk.describe()
    talk.end()
    talk.init(talk.me)


@CASES.add
def never_given_an_epoch(talk: RestartedTalk) -> Iterator[None]:
    talk.left(S.EMPTY, epoch=-1, producer_id=920_006)
    yield
    talk.describe()
    talk.init(Producer(5, 5))


@CASES.add
def unused_for_long(talk: RestartedTalk) -> Iterator[None]:
    talk.left(S.COMPLETE_COMMIT, last_update_ms=1)
    yield

    def is_gone() -> bool:
        noted = len(talk.answers)
        code = talk.describe().transaction_states[0].error_code
        del talk.answers[noted:]
        return bool(code)

    wait_until(is_gone, "the id has expired", 30)
    talk._ids.clear()  # one broker may have described it before it was gone
    talk.describe()
    talk.add({TOPIC: (0,)})
    talk.add_offsets()
    talk.end()
    talk.verify({TOPIC: (0,)})
    talk.produce(TOPIC, 0, 0)
    talk.init(talk.me)


def before_there_is_a_topic(talk: RestartedTalk) -> None:
    """Nothing coordinates transactions until somebody looks for a coordinator."""
    talk.me = Producer(1, 0)
    talk.init(takes=False)
    talk.add({TOPIC: (0,)})
    talk.add_offsets()
    talk.verify({TOPIC: (0,)})
    talk.end()
    talk.commit_offsets({(TOPIC, 0): 1})
    talk.produce(TOPIC, 0, 0)
    talk.describe()
    talk.list_own()
    talk.ask(fc.FindCoordinatorRequest(key="", key_type=1), 3)


def key_of(name: str) -> bytes:
    return encode_stored(TransactionLogKey(transactional_id=name), 0)
