"""A transactional producer's core when somebody else decides: prepare, resume, complete."""

from __future__ import annotations

import pytest

from ottla.client.config import ProducerConfig
from ottla.client.errors import (
    FatalError,
    ProducerFenced,
    TimedOut,
    TwoPhaseCommitRefused,
    WrongTransactionState,
)
from ottla.client.fetching.decoding import Position
from ottla.client.group.metadata import GroupMetadata
from ottla.client.producing.prepared import Prepared
from ottla.client.producing.producer import ProducerCore
from ottla.client.producing.transactions import State
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.wire.apis.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.wire.keys import ApiKey
from support.client.fake_cluster import HANG_UP, SILENCE
from support.client.producing import a_record, numbers_sent
from support.client.transacting import PRODUCER_ID, TransactingCluster, a_transactional_producer

WRITER = Prepared(PRODUCER_ID, 0)


class KeepingCluster(TransactingCluster):
    """Keeps what is prepared; ``highest`` is the last InitProducerId that its brokers speak."""

    def __init__(self, highest: int = 6, ongoing: Prepared | None = None) -> None:
        super().__init__()
        self.versions[ApiKey.INIT_PRODUCER_ID] = (0, highest)
        self.ongoing = ongoing

    def _response(self, broker: int, api_key: int, message: object) -> object:
        before = Prepared(PRODUCER_ID, self.epoch)
        answer = super()._response(broker, api_key, message)
        is_kept = isinstance(message, InitProducerIdRequest) and message.keep_prepared_txn
        if is_kept and isinstance(answer, InitProducerIdResponse) and not answer.error_code:
            kept = self.ongoing or before
            answer.ongoing_txn_producer_id, answer.ongoing_txn_producer_epoch = kept
        return answer

    def inits(self) -> list[tuple[int, bool, bool]]:
        """The epoch that each InitProducerId claimed, and what it asked for."""
        return [
            (message.producer_epoch, message.enable_2pc, message.keep_prepared_txn)
            for _, _, message in self.requests(ApiKey.INIT_PRODUCER_ID)
        ]

    def ended(self) -> list[tuple[int, bool]]:
        return [
            (message.producer_epoch, message.committed) for _, _, message in self.requests(ApiKey.END_TXN)
        ]


def written(cluster: KeepingCluster, value: bytes = b"a") -> ProducerCore:
    producer = a_transactional_producer(cluster, max_block_ms=5_000)
    producer.transactions.begin()
    producer.send("orders", a_record(value), 0)
    return producer


def test_to_prepare_delivers_everything_and_then_lifts_the_time_out() -> None:
    cluster = KeepingCluster()
    producer = written(cluster)

    prepared = cluster.run(producer.transactions.prepare())

    assert (prepared, producer.transactions.state) == (WRITER, State.PREPARED)
    assert cluster.names() == ["InitProducerId", "AddPartitionsToTxn", "Produce", "InitProducerId"]
    assert cluster.inits() == [(-1, False, False), (0, True, True)]
    for call in (lambda: producer.send("orders", a_record(b"b"), 0), producer.transactions.begin):
        with pytest.raises(WrongTransactionState, match="a transaction is prepared"):
            call()


def test_the_next_transaction_asks_for_its_time_out_and_begins_to_number_anew() -> None:
    cluster = KeepingCluster()
    producer = written(cluster)
    cluster.run(producer.transactions.prepare())
    cluster.run(producer.transactions.commit())
    assert cluster.ended() == [(1, True)]

    producer.transactions.begin()
    producer.send("orders", a_record(b"b"), 0)
    cluster.run(producer.transactions.commit())

    assert cluster.inits()[-1] == (1, False, False)
    assert numbers_sent(cluster)[-1][1:] == (2, 0)
    assert cluster.ended() == [(1, True), (2, True)]


@pytest.mark.parametrize("answer", [HANG_UP, SILENCE], ids=["hang up", "silence"])
def test_a_lost_answer_is_asked_again_as_the_same_writer(answer: object) -> None:
    cluster = KeepingCluster()
    producer = written(cluster)
    cluster.run(producer.flush())
    cluster.script(ApiKey.INIT_PRODUCER_ID, answer)

    if answer is SILENCE:
        with pytest.raises(TimedOut):
            cluster.run(producer.transactions.prepare())
        assert producer.transactions.state is State.PREPARING
    prepared = cluster.run(producer.transactions.prepare())

    assert prepared == WRITER
    assert cluster.inits()[1:] == [(0, True, True), (0, True, True)]


def test_a_writer_whose_time_was_up_hears_that_it_is_fenced() -> None:
    cluster = KeepingCluster()
    producer = written(cluster)
    cluster.refuse(ApiKey.INIT_PRODUCER_ID, ErrorCode.PRODUCER_FENCED)

    with pytest.raises(ProducerFenced):
        cluster.run(producer.transactions.prepare())

    assert producer.transactions.state is State.FATAL


def test_a_transaction_that_is_not_open_any_more_is_not_prepared() -> None:
    cluster = KeepingCluster(ongoing=Prepared(PRODUCER_ID, 9))
    producer = written(cluster)

    with pytest.raises(FatalError, match="77:0 is not open any more"):
        cluster.run(producer.transactions.prepare())


@pytest.mark.parametrize("highest", [5, 6], ids=["unknown", "refused"])
def test_where_nothing_is_kept_the_transaction_can_still_be_committed(highest: int) -> None:
    cluster = KeepingCluster(highest)
    producer = written(cluster)
    if highest == 6:
        cluster.refuse(ApiKey.INIT_PRODUCER_ID, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)

    with pytest.raises(TwoPhaseCommitRefused, match=r"transaction\.two\.phase\.commit\.enable"):
        cluster.run(producer.transactions.prepare())
    cluster.run(producer.transactions.commit())

    assert cluster.ended() == [(0, True)]


@pytest.mark.parametrize("decided", [Prepared(5, 3), Prepared(5, 4)], ids=["this one", "another"])
def test_a_successor_commits_exactly_what_was_decided(decided: Prepared) -> None:
    cluster = KeepingCluster(ongoing=Prepared(5, 3))
    successor = ProducerCore(cluster.engine, ProducerConfig(transactional_id="payments"))

    cluster.run(successor.transactions.init(keep_prepared=True))
    found = successor.transactions.prepared
    is_committed = cluster.run(successor.transactions.complete(decided))

    assert (found, is_committed) == (Prepared(5, 3), decided == Prepared(5, 3))
    assert cluster.inits() == [(-1, False, True)]
    assert cluster.ended() == [(0, is_committed)]
    assert cluster.run(successor.transactions.complete(decided)) is False


def test_a_transaction_without_records_is_prepared_and_ended_without_a_word() -> None:
    cluster = KeepingCluster()
    producer = a_transactional_producer(cluster)
    producer.transactions.begin()

    prepared = cluster.run(producer.transactions.prepare())
    cluster.run(producer.transactions.complete(prepared))

    assert (prepared, cluster.names()) == (WRITER, ["InitProducerId"])


@pytest.mark.parametrize("text", ["", "7", "7:", ":3", "a:3", "7:-1", "7:3:1"])
def test_what_names_no_transaction_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="producer id:epoch"):
        Prepared.parse(text)


def test_a_name_survives_being_written_down() -> None:
    assert Prepared.parse(str(Prepared(4711, 3))) == Prepared(4711, 3)


def test_offsets_alone_begin_a_transaction_with_a_time_out_too() -> None:
    cluster = KeepingCluster()
    producer = written(cluster)
    cluster.run(producer.transactions.prepare())
    cluster.run(producer.transactions.commit())

    producer.transactions.begin()
    positions = {TopicPartition("source", 0): Position(10)}
    cluster.run(producer.transactions.send_offsets(positions, GroupMetadata("readers")))

    assert cluster.names()[-3:] == ["InitProducerId", "AddOffsetsToTxn", "TxnOffsetCommit"]
    assert cluster.inits()[-1] == (1, False, False)
