"""A transactional producer's core: what it asks, in which order, and where it stands after each answer."""

from collections.abc import Callable
from typing import Any

import pytest

from ottla.client.config import ProducerConfig
from ottla.client.engine.tasks import Operation
from ottla.client.errors import (
    AbortableError,
    ClientError,
    FatalError,
    ProducerFenced,
    TimedOut,
    TransactionAborted,
    WrongTransactionState,
)
from ottla.client.fetching.decoding import Position
from ottla.client.group.metadata import GroupMetadata
from ottla.client.producing.producer import ProducerCore
from ottla.client.producing.transactions import State
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.records.batch import read_header
from ottla.wire.keys import ApiKey
from support.client.fake_cluster import HANG_UP, SILENCE
from support.client.producing import (
    ORDERS_0,
    a_cluster,
    a_producer,
    a_record,
    numbers_sent,
    refusal,
    values_in,
)
from support.client.transacting import PRODUCER_ID, TransactingCluster, a_transactional_producer

GROUP = GroupMetadata("readers", 4, "me", "seat 1")
OFFSETS = {TopicPartition("source", 0): Position(10, 2)}

ADDS, PRODUCES, ENDS = "AddPartitionsToTxn", "Produce", "EndTxn"


def opened(**settings: Any) -> tuple[TransactingCluster, ProducerCore]:
    cluster = TransactingCluster(**settings)
    producer = a_transactional_producer(cluster)
    producer.transactions.begin()
    return cluster, producer


def sent(
    cluster: TransactingCluster, producer: ProducerCore, value: bytes = b"a", partition: int = 0
) -> None:
    producer.send("orders", a_record(value), partition)
    cluster.run(producer.flush())


def test_a_partition_is_added_once_before_its_first_batch_and_a_commit_delivers_first() -> None:
    cluster, producer = opened()

    sent(cluster, producer)
    sent(cluster, producer)
    sent(cluster, producer, partition=1)
    last = producer.send("orders", a_record(b"last"), 1)
    cluster.run(producer.transactions.commit())

    assert last.error is None
    assert cluster.names() == [
        "InitProducerId", ADDS, PRODUCES, PRODUCES, ADDS, PRODUCES, PRODUCES, ENDS
    ]  # fmt: skip
    assert producer.transactions.state is State.READY
    end = cluster.requests(ApiKey.END_TXN)[0][2]
    assert (end.transactional_id, end.producer_id, end.producer_epoch, end.committed) == (
        "payments", PRODUCER_ID, 0, True
    )  # fmt: skip


def test_batches_are_transactional_and_numbered_on_through_transactions() -> None:
    cluster, producer = opened()
    sent(cluster, producer)
    cluster.run(producer.transactions.commit())
    producer.transactions.begin()
    sent(cluster, producer)

    requests = [message for _, _, message in cluster.requests(ApiKey.PRODUCE)]
    headers = [read_header(bytes(request.topic_data[0].partition_data[0].records)) for request in requests]
    assert [request.transactional_id for request in requests] == ["payments"] * 2
    assert [header.is_transactional for header in headers] == [True, True]
    assert numbers_sent(cluster) == [(PRODUCER_ID, 0, 0), (PRODUCER_ID, 0, 1)]
    assert len(cluster.requests(ApiKey.ADD_PARTITIONS_TO_TXN)) == 2


@pytest.mark.parametrize("name", ["commit", "abort"])
def test_a_transaction_without_records_is_not_told_to_the_coordinator(name: str) -> None:
    cluster, producer = opened()

    cluster.run(getattr(producer.transactions, name)())

    assert cluster.names() == ["InitProducerId"]
    assert producer.transactions.state is State.READY


def test_offsets_go_along_with_the_member_that_read() -> None:
    cluster, producer = opened()

    cluster.run(producer.transactions.send_offsets(OFFSETS, GROUP))
    cluster.run(producer.transactions.send_offsets(OFFSETS, GROUP))
    cluster.run(producer.transactions.commit())

    assert cluster.names()[1:] == ["AddOffsetsToTxn", "TxnOffsetCommit", "TxnOffsetCommit", ENDS]
    request = cluster.requests(ApiKey.TXN_OFFSET_COMMIT)[0][2]
    assert (request.group_id, request.generation_id, request.member_id, request.group_instance_id) == (
        "readers", 4, "me", "seat 1"
    )  # fmt: skip
    row = request.topics[0].partitions[0]
    assert (row.committed_offset, row.committed_leader_epoch) == (10, 2)


def test_an_abort_drops_what_is_not_sent_and_keeps_the_epoch() -> None:
    cluster = TransactingCluster()
    producer = a_transactional_producer(cluster, linger_ms=100)
    producer.transactions.begin()
    sent(cluster, producer, b"a")
    dropped = producer.send("orders", a_record(b"dropped"), 0)

    cluster.run(producer.transactions.abort())

    assert isinstance(dropped.error, TransactionAborted)
    assert values_in(cluster) == [b"a"]
    assert cluster.names().count("InitProducerId") == 1
    assert cluster.requests(ApiKey.END_TXN)[0][2].committed is False
    assert producer.buffered_bytes == 0


def test_a_record_that_is_not_delivered_forbids_the_commit_and_the_abort_raises_the_epoch() -> None:
    cluster, producer = opened()
    sent(cluster, producer, b"a")
    cluster.script(ApiKey.PRODUCE, refusal(ErrorCode.INVALID_TIMESTAMP))
    producer.send("orders", a_record(b"bad"), 0)

    with pytest.raises(AbortableError, match="INVALID_TIMESTAMP"):
        cluster.run(producer.transactions.commit())
    with pytest.raises(AbortableError, match="abort the transaction"):
        producer.send("orders", a_record(b"c"), 0)
    cluster.run(producer.transactions.abort())
    producer.transactions.begin()
    sent(cluster, producer, b"next")
    cluster.run(producer.transactions.commit())

    assert [message.committed for _, _, message in cluster.requests(ApiKey.END_TXN)] == [False, True]
    assert numbers_sent(cluster)[-1] == (PRODUCER_ID, 1, 0)
    bump = cluster.requests(ApiKey.INIT_PRODUCER_ID)[1][2]
    assert (bump.producer_id, bump.producer_epoch) == (PRODUCER_ID, 0)


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.TRANSACTION_ABORTABLE,
        ErrorCode.INVALID_TXN_STATE,
    ],
)
def test_a_leader_that_refuses_the_numbers_makes_the_transaction_abortable(code: ErrorCode) -> None:
    cluster, producer = opened()
    cluster.script(ApiKey.PRODUCE, refusal(code))

    sent(cluster, producer)

    assert producer.transactions.state is State.ABORTABLE
    assert numbers_sent(cluster) == [(PRODUCER_ID, 0, 0)], "no epoch of its own making"


def test_a_retriable_refusal_of_a_leader_is_retried_in_the_same_transaction() -> None:
    cluster, producer = opened()
    cluster.script(ApiKey.PRODUCE, refusal(ErrorCode.NOT_ENOUGH_REPLICAS))

    sent(cluster, producer, b"a")
    cluster.run(producer.transactions.commit())

    assert values_in(cluster) == [b"a"]
    assert numbers_sent(cluster) == [(PRODUCER_ID, 0, 0)] * 2


def do_init(producer: ProducerCore) -> Operation[None]:
    return producer.transactions.init()


def do_add(producer: ProducerCore) -> Operation[None]:
    producer.send("orders", a_record(), 0)
    yield from producer.flush()
    if producer.transactions.error is not None:
        raise producer.transactions.error


def do_offsets(producer: ProducerCore) -> Operation[None]:
    return producer.transactions.send_offsets(OFFSETS, GROUP)


def do_commit(producer: ProducerCore) -> Operation[None]:
    producer.send("orders", a_record(), 0)
    return producer.transactions.commit()


def do_abort(producer: ProducerCore) -> Operation[None]:
    producer.send("orders", a_record(), 0)
    yield from producer.flush()
    yield from producer.transactions.abort()


DOES = {
    "init": (ApiKey.INIT_PRODUCER_ID, do_init, State.READY),
    "add": (ApiKey.ADD_PARTITIONS_TO_TXN, do_add, State.OPEN),
    "add offsets": (ApiKey.ADD_OFFSETS_TO_TXN, do_offsets, State.OPEN),
    "commit offsets": (ApiKey.TXN_OFFSET_COMMIT, do_offsets, State.OPEN),
    "commit": (ApiKey.END_TXN, do_commit, State.READY),
    "abort": (ApiKey.END_TXN, do_abort, State.READY),
}


def do(does: str, code: int) -> tuple[TransactingCluster, State, ClientError | None]:
    """One request is answered with a code once: where the producer stands, and what its program got."""
    api_key, operation, _ = DOES[does]
    cluster = TransactingCluster()
    if does == "init":
        producer = ProducerCore(cluster.engine, ProducerConfig(transactional_id="payments"))
    else:
        producer = a_transactional_producer(cluster)
        producer.transactions.begin()
    cluster.refuse(api_key, code)
    try:
        cluster.run(operation(producer))
    except ClientError as error:
        return cluster, producer.transactions.state, error
    return cluster, producer.transactions.state, None


@pytest.mark.parametrize("does", DOES)
@pytest.mark.parametrize(
    ("code", "lookups"),
    [
        (ErrorCode.CONCURRENT_TRANSACTIONS, 0),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, 0),
        (ErrorCode.NOT_COORDINATOR, 1),
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, 1),
    ],
)
def test_a_request_that_may_succeed_later_is_repeated(does: str, code: ErrorCode, lookups: int) -> None:
    calm, _, _ = do(does, ErrorCode.NONE) if does != "init" else (None, None, None)
    cluster, state, error = do(does, code)

    assert error is None
    assert state is DOES[does][2]
    assert len(cluster.requests(DOES[does][0])) >= 2
    found = len(cluster.requests(ApiKey.FIND_COORDINATOR))
    assert found == lookups + (len(calm.requests(ApiKey.FIND_COORDINATOR)) if calm is not None else 1)


@pytest.mark.parametrize("does", DOES)
@pytest.mark.parametrize("code", [ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH])
def test_a_fenced_producer_is_told_so_and_can_do_nothing_more(does: str, code: ErrorCode) -> None:
    _, state, error = do(does, code)

    assert isinstance(error, ProducerFenced)
    assert state is State.FATAL


@pytest.mark.parametrize(
    ("does", "code", "state"),
    [
        ("init", ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, State.FATAL),
        ("init", ErrorCode.TRANSACTION_ABORTABLE, State.NEW),
        ("add", ErrorCode.TRANSACTION_ABORTABLE, State.ABORTABLE),
        ("add", ErrorCode.TOPIC_AUTHORIZATION_FAILED, State.ABORTABLE),
        ("add", ErrorCode.INVALID_PRODUCER_ID_MAPPING, State.ABORTABLE),
        ("add", ErrorCode.INVALID_TXN_STATE, State.FATAL),
        ("add offsets", ErrorCode.GROUP_AUTHORIZATION_FAILED, State.ABORTABLE),
        ("add offsets", ErrorCode.INVALID_TXN_STATE, State.FATAL),
        ("commit offsets", ErrorCode.ILLEGAL_GENERATION, State.ABORTABLE),
        ("commit offsets", ErrorCode.FENCED_INSTANCE_ID, State.ABORTABLE),
        ("commit offsets", ErrorCode.INVALID_PRODUCER_ID_MAPPING, State.FATAL),
        ("commit", ErrorCode.TRANSACTION_ABORTABLE, State.ABORTABLE),
        ("commit", ErrorCode.INVALID_PRODUCER_ID_MAPPING, State.ABORTABLE),
        ("commit", ErrorCode.INVALID_TXN_STATE, State.FATAL),
        ("abort", ErrorCode.INVALID_TXN_STATE, State.FATAL),
    ],
)
def test_what_is_final_leaves_the_producer_abortable_or_finished(
    does: str, code: ErrorCode, state: State
) -> None:
    _, found, error = do(does, code)

    assert isinstance(error, FatalError if state is State.FATAL else AbortableError)
    assert found is state


def test_an_abort_goes_on_when_the_coordinator_has_forgotten_the_producer() -> None:
    cluster, state, error = do("abort", ErrorCode.INVALID_PRODUCER_ID_MAPPING)

    assert (state, error) == (State.READY, None)
    assert cluster.names()[-2:] == [ENDS, "InitProducerId"]


def test_a_lost_answer_to_the_end_is_asked_for_again() -> None:
    cluster, producer = opened()
    sent(cluster, producer)
    cluster.script(ApiKey.END_TXN, HANG_UP)

    cluster.run(producer.transactions.commit())

    assert [message.committed for _, _, message in cluster.requests(ApiKey.END_TXN)] == [True, True]
    assert producer.transactions.state is State.READY


@pytest.mark.parametrize("name", ["commit", "abort"])
@pytest.mark.parametrize("fault", [HANG_UP, SILENCE])
@pytest.mark.parametrize(
    "lost",
    [ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.ADD_OFFSETS_TO_TXN, ApiKey.TXN_OFFSET_COMMIT, ApiKey.END_TXN],
)
def test_a_request_that_may_still_be_on_its_way_finds_a_newer_epoch_than_its_own(
    lost: ApiKey, fault: str, name: str
) -> None:
    """KAFKA-17754: a late EndTxn would end the next transaction, if both had the same epoch."""
    cluster, producer = opened(request_timeout_ms=1_000)
    transactions = producer.transactions
    cluster.script(lost, fault)
    sent(cluster, producer)
    cluster.run(transactions.send_offsets(OFFSETS, GROUP))
    cluster.run(getattr(transactions, name)())

    transactions.begin()
    cluster.run(transactions.send_offsets(OFFSETS, GROUP))
    sent(cluster, producer)
    cluster.run(transactions.commit())
    transactions.begin()
    sent(cluster, producer)
    cluster.run(transactions.commit())

    ends = [(message.producer_epoch, message.committed) for _, _, message in cluster.requests(ApiKey.END_TXN)]
    times = 2 if lost is ApiKey.END_TXN else 1
    assert ends == [*[(0, name == "commit")] * times, (1, True), (1, True)]
    assert numbers_sent(cluster) == [(PRODUCER_ID, 0, 0), (PRODUCER_ID, 1, 0), (PRODUCER_ID, 1, 1)]
    assert cluster.names().count("InitProducerId") == 2


def test_a_commit_that_ran_out_of_time_can_only_be_repeated() -> None:
    cluster = TransactingCluster()
    producer = a_transactional_producer(cluster, max_block_ms=1_000)
    producer.transactions.begin()
    sent(cluster, producer)
    cluster.refuse(ApiKey.END_TXN, *[ErrorCode.CONCURRENT_TRANSACTIONS] * 200)

    with pytest.raises(TimedOut, match="CONCURRENT_TRANSACTIONS"):
        cluster.run(producer.transactions.commit())
    with pytest.raises(WrongTransactionState, match="commit_transaction again"):
        cluster.run(producer.transactions.abort())
    cluster.scripted.clear()
    cluster.run(producer.transactions.commit())

    assert producer.transactions.state is State.READY


def test_an_abort_learns_first_whether_a_lost_request_has_begun_the_transaction() -> None:
    cluster, producer = opened()
    cluster.script(ApiKey.ADD_PARTITIONS_TO_TXN, HANG_UP, HANG_UP)
    producer.send("orders", a_record(), 0)
    cluster.settle()

    cluster.run(producer.transactions.abort())

    assert cluster.names()[1:] == [ADDS, ADDS, ADDS, ENDS]


def test_an_abort_does_not_wait_for_a_partition_that_never_comes() -> None:
    cluster, producer = opened()
    cluster.refuse(ApiKey.ADD_PARTITIONS_TO_TXN, *[ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 1_000)
    record = producer.send("orders", a_record(), 0)
    cluster.pass_time(1_000)

    cluster.run(producer.transactions.abort())

    assert record.error is not None
    assert ENDS not in cluster.names()
    assert producer.transactions.state is State.READY


def test_an_abort_raises_the_epoch_if_a_batch_may_still_arrive() -> None:
    cluster, producer = opened(request_timeout_ms=1_000)
    cluster.script(ApiKey.PRODUCE, SILENCE)
    producer.send("orders", a_record(b"late"), 0)
    cluster.settle()

    cluster.run(producer.transactions.abort())
    producer.transactions.begin()
    sent(cluster, producer, b"next")

    assert cluster.names()[1:] == [ADDS, PRODUCES, ENDS, "InitProducerId", ADDS, PRODUCES]
    assert numbers_sent(cluster)[-1] == (PRODUCER_ID, 1, 0)


def test_closing_a_producer_aborts_its_open_transaction() -> None:
    cluster, producer = opened()
    sent(cluster, producer)

    cluster.run(producer.end())

    assert cluster.requests(ApiKey.END_TXN)[0][2].committed is False


@pytest.mark.parametrize(
    ("does", "first"),
    [
        (lambda txn: txn.begin(), "init_transactions comes first"),
        (lambda txn: txn.check_send(), "init_transactions comes first"),
    ],
)
def test_a_new_producer_says_what_comes_first(does: Callable[[Any], Any], first: str) -> None:
    cluster = TransactingCluster()
    producer = ProducerCore(cluster.engine, ProducerConfig(transactional_id="payments"))

    with pytest.raises(WrongTransactionState, match=first):
        does(producer.transactions)


def test_methods_out_of_turn_say_what_comes_first() -> None:
    cluster = TransactingCluster()
    producer = a_transactional_producer(cluster)

    with pytest.raises(WrongTransactionState, match="begin_transaction comes first"):
        producer.send("orders", a_record())
    with pytest.raises(WrongTransactionState, match="begin_transaction comes first"):
        cluster.run(producer.transactions.commit())
    producer.transactions.begin()
    with pytest.raises(WrongTransactionState, match="commit or abort it first"):
        producer.transactions.begin()
    cluster.spawn(producer.transactions.send_offsets(OFFSETS, GROUP))
    cluster.is_holding = True
    cluster.settle()
    with pytest.raises(WrongTransactionState, match="send_offsets_to_transaction is under way"):
        cluster.run(producer.transactions.commit())


def test_a_producer_without_a_transactional_id_says_what_it_lacks() -> None:
    with pytest.raises(WrongTransactionState, match="with a transactional_id"):
        a_producer(a_cluster()).transactions.begin()


@pytest.mark.parametrize(
    "settings",
    [
        {"transactional_id": ""},
        {"transactional_id": "t", "acks": 1},
        {"transactional_id": "t", "enable_idempotence": False},
    ],
)
def test_settings_that_rule_transactions_out_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="transactional_id"):
        ProducerConfig(**settings)


def test_a_record_of_an_unknown_topic_forbids_the_commit() -> None:
    cluster = TransactingCluster()
    producer = a_transactional_producer(cluster, max_block_ms=500)
    producer.transactions.begin()
    producer.send("nowhere", a_record())

    with pytest.raises(AbortableError, match="nowhere"):
        cluster.run(producer.transactions.commit())

    assert ORDERS_0 not in producer.transactions.partitions
