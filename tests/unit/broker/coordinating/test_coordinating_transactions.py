"""A broker that leads a partition of ``__transaction_state``: whole transactions, changes of leadership."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.broker.observed.gauges import METRICS
from ottla.coordinator.txn.records import read_state
from ottla.model.errors import ErrorCode
from ottla.model.internal_topics import TRANSACTIONS_TOPIC
from ottla.model.spread import coordinating_partition
from ottla.records.batch import batches
from ottla.records.pairs import read_pairs
from ottla.wire.apis.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from ottla.wire.apis.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.apis.describe_transactions import DescribeTransactionsRequest
from ottla.wire.apis.end_txn import EndTxnRequest, EndTxnResponse
from ottla.wire.apis.find_coordinator import FindCoordinatorRequest
from ottla.wire.apis.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.wire.apis.list_transactions import ListTransactionsRequest
from ottla.wire.apis.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from ottla.wire.keys import ApiKey
from support.bench.led_broker import ME, SECOND, TOPIC, LedBroker
from support.bench.node_bench import a_config

NAME = "payments"
LOAD_MS = 1_000
PRODUCER_ID = 40


class Coordinator(LedBroker):
    """Broker 1; it leads a topic that is written to, and the test says who leads the transactions."""

    def __init__(self, **settings: str) -> None:
        super().__init__(a_config(**settings) if settings else None)
        self.lead(isr=(ME,))
        self.topic, self.topic_id = TRANSACTIONS_TOPIC, b"transactions....."[:16]
        self.epoch = 0
        self.node.producer_ids._next_block = range(PRODUCER_ID, PRODUCER_ID + 1_000)

    def coordinate(
        self, isr: tuple[int, ...] = (ME,), replicas: tuple[int, ...] | None = None
    ) -> Coordinator:
        self.tell_metadata(replicas, p0=ME)
        assert self.assigned_code(ME, isr=isr) == 0
        self.advance(LOAD_MS)
        return self

    def init(self, timeout_ms: int = 60_000) -> tuple[int, int, int]:
        request = InitProducerIdRequest(transactional_id=NAME, transaction_timeout_ms=timeout_ms)
        answer = self.ask(request, 4)
        return answer.error_code, answer.producer_id, answer.producer_epoch

    def keep(self, *, two_phase: bool = True) -> InitProducerIdResponse:
        request = InitProducerIdRequest(
            transactional_id=NAME,
            transaction_timeout_ms=60_000,
            enable_2pc=two_phase,
            keep_prepared_txn=True,
        )
        answer: InitProducerIdResponse = self.ask(request, 6)
        return answer

    def add(self, topic: str = TOPIC, epoch: int = 0, version: int = 3) -> int:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=NAME,
            v3_and_below_producer_id=PRODUCER_ID,
            v3_and_below_producer_epoch=epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=(0,))],
        )
        rows = self.ask(request, version).results_by_topic_v3_and_below
        return int(rows[0].results_by_partition[0].partition_error_code)

    def end(self, *, commit: bool = True, epoch: int = 0) -> int:
        request = EndTxnRequest(
            transactional_id=NAME, producer_id=PRODUCER_ID, producer_epoch=epoch, committed=commit
        )
        return int(self.ask(request, 3).error_code)

    def state(self) -> str:
        request = DescribeTransactionsRequest(transactional_ids=(NAME,))
        row = self.ask(request, 0).transaction_states[0]
        return row.transaction_state if row.error_code == 0 else ErrorCode(row.error_code).name

    def markers(self) -> list[Any]:
        """The markers of the newest request."""
        self.connect_links()
        asked = self.peer_requests(WriteTxnMarkersRequest)
        return list(asked[-1][3].markers) if asked else []

    def write_markers(self, code: ErrorCode = ErrorCode.NONE) -> None:
        """Answer the newest request."""
        response = WriteTxnMarkersResponse(
            markers=[
                WritableTxnMarkerResult(
                    producer_id=marker.producer_id,
                    topics=[
                        WritableTxnMarkerTopicResult(
                            name=topic.name,
                            partitions=[
                                WritableTxnMarkerPartitionResult(partition_index=index, error_code=code)
                                for index in topic.partition_indexes
                            ],
                        )
                        for topic in marker.topics
                    ],
                )
                for marker in self.markers()
            ]
        )
        self.answer_peer(WriteTxnMarkersRequest, response)

    def stored(self) -> list[str]:
        """The states that the log has, in their order."""
        data = memoryview(self.fetch_now(0).records or b"")
        values = [value for header in batches(data) for _, value in read_pairs(data, header)]
        return ["tombstone" if value is None else read_state(value).state.shown for value in values]


def test_a_whole_transaction() -> None:
    broker = Coordinator().coordinate()

    assert broker.init() == (0, PRODUCER_ID, 0)
    assert (broker.add(), broker.end()) == (0, 0)
    [marker] = broker.markers()
    assert (marker.producer_id, marker.transaction_result, marker.coordinator_epoch) == (PRODUCER_ID, True, 1)
    assert broker.state() == "PrepareCommit"
    broker.write_markers()

    assert broker.state() == "CompleteCommit"
    assert broker.stored() == ["Empty", "Ongoing", "PrepareCommit", "CompleteCommit"]


def test_a_client_waits_until_the_replicas_have_its_outcome() -> None:
    broker = Coordinator().coordinate()
    broker.init()
    broker.add()
    assert broker.assigned_code(ME, isr=(ME, SECOND)) == 0
    connection = broker.connect()
    request = EndTxnRequest(transactional_id=NAME, producer_id=PRODUCER_ID, committed=True)
    broker.send(connection, request, 3)

    assert broker.take_answers(connection, EndTxnResponse, 3) == []
    assert (broker.state(), broker.markers()) == ("Ongoing", [])
    broker.fetch_now(3, replica=SECOND)

    assert [answer.error_code for answer in broker.take_answers(connection, EndTxnResponse, 3)] == [0]
    assert broker.state() == "PrepareCommit"


def test_a_follower_whose_fetch_commits_one_record_gets_the_next_one_at_once() -> None:
    """A transaction without partitions ends as soon as its outcome is committed."""
    broker = Coordinator().coordinate()
    broker.init()
    broker.ask(AddPartitionsToTxnRequest(v3_and_below_transactional_id=NAME, v3_and_below_producer_id=40), 3)
    assert broker.assigned_code(ME, isr=(ME, SECOND)) == 0
    follower = broker.connect()
    opened = broker.fetched(broker.fetch(2, replica=SECOND, session=(0, 0), connection=follower))
    assert opened is not None
    session = opened.session_id
    broker.send(
        broker.connect(),
        EndTxnRequest(transactional_id=NAME, producer_id=PRODUCER_ID, committed=True),
        3,
    )
    broker.fetched(broker.fetch(2, replica=SECOND, session=(session, 1), connection=follower))

    broker.fetch(3, replica=SECOND, session=(session, 2), connection=follower, max_wait_ms=500)

    answer = broker.fetched(follower)
    assert answer is not None, "the follower must not wait for what is there"
    [header] = batches(memoryview(answer.responses[0].partitions[0].records or b""))
    assert header.base_offset == 3


def test_whoever_leads_again_finishes_what_was_prepared_under_its_new_epoch() -> None:
    broker = Coordinator().coordinate()
    broker.init()
    broker.add()
    broker.end()
    first = broker.markers()
    broker.follow(SECOND)
    assert (broker.state(), broker.init()[0]) == ("NOT_COORDINATOR", ErrorCode.NOT_COORDINATOR)
    broker.write_markers()

    broker.coordinate()

    again = broker.markers()
    assert broker.state() == "PrepareCommit"
    assert [each.coordinator_epoch for each in (*first, *again)] == [1, 3]
    broker.write_markers()
    assert broker.state() == "CompleteCommit"


def test_a_transaction_is_aborted_when_its_time_is_up() -> None:
    broker = Coordinator().coordinate()
    broker.init(timeout_ms=5_000)
    broker.add()

    broker.advance(15_000)

    [marker] = broker.markers()
    assert (marker.producer_epoch, marker.transaction_result) == (1, False)
    broker.write_markers()
    assert (broker.state(), broker.end()) == ("CompleteAbort", ErrorCode.PRODUCER_FENCED)


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_a_fenced_client_hears_it_in_its_own_words(version: int) -> None:
    broker = Coordinator().coordinate()
    broker.init()

    expected = ErrorCode.INVALID_PRODUCER_EPOCH if version < 2 else ErrorCode.PRODUCER_FENCED
    assert broker.add(epoch=5, version=version) == expected


def test_internal_topics_and_unknown_ones_are_refused_to_clients() -> None:
    broker = Coordinator().coordinate()
    broker.init()

    assert broker.add(TRANSACTIONS_TOPIC) == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert broker.add("unknown") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert broker.state() == "Empty"


@pytest.mark.parametrize(("timeout_ms", "expected"), [(0, 50), (-1, 50), (900_001, 50), (900_000, 0), (1, 0)])
def test_time_outs_have_limits(timeout_ms: int, expected: int) -> None:
    broker = Coordinator().coordinate()

    assert broker.init(timeout_ms)[0] == expected


def test_a_batch_of_transactions_is_answered_when_all_are_done() -> None:
    broker = Coordinator().coordinate()
    broker.init()
    topics = [AddPartitionsToTxnTopic(name=TOPIC, partitions=(0,))]
    transactions = [
        AddPartitionsToTxnTransaction(NAME, PRODUCER_ID, 0, verify_only=is_verify, topics=topics)
        for is_verify in (True, False, True)
    ]

    answer = broker.ask(AddPartitionsToTxnRequest(transactions=transactions), 5)

    codes = [
        row.topic_results[0].results_by_partition[0].partition_error_code
        for row in answer.results_by_transaction
    ]
    assert codes == [ErrorCode.TRANSACTION_ABORTABLE, 0, 0]
    assert broker.ask(AddPartitionsToTxnRequest(transactions=[]), 5).results_by_transaction == []


def test_while_a_shard_loads_clients_come_again() -> None:
    broker = Coordinator()
    broker.tell_metadata(p0=ME)
    assert broker.assigned_code(ME, isr=(ME, SECOND)) == 0

    loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert broker.init()[0] == loading
    assert broker.state() == loading.name
    assert broker.ask(ListTransactionsRequest(), 1).error_code == loading


def test_clients_are_told_who_coordinates() -> None:
    broker = Coordinator().coordinate()

    found = broker.ask(FindCoordinatorRequest(key=NAME, key_type=1), 3)

    assert (found.error_code, found.node_id) == (0, ME)


def test_markers_of_the_last_term_are_not_sent_again() -> None:
    """They would carry its coordinator epoch, which partitions refuse once they have a marker of this one."""
    broker = Coordinator().coordinate()
    broker.init()
    broker.add()
    broker.end()
    broker.markers()
    broker.follow(SECOND)
    broker.coordinate()

    broker.write_markers(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    broker.advance(LOAD_MS)

    assert [each.coordinator_epoch for each in broker.markers()] == [3]
    broker.write_markers()
    assert broker.state() == "CompleteCommit"
    broker.advance(LOAD_MS)
    sent = [row[3].markers for row in broker.peer_requests(WriteTxnMarkersRequest)]
    assert [each.coordinator_epoch for markers in sent for each in markers] == [1, 3]


def test_brokers_may_ask_about_internal_topics() -> None:
    """A group's offsets belong to a transaction as records do."""
    broker = Coordinator().coordinate()
    broker.init()
    topics = [AddPartitionsToTxnTopic(name=TRANSACTIONS_TOPIC, partitions=(0,))]
    asked = AddPartitionsToTxnTransaction(NAME, PRODUCER_ID, 0, verify_only=True, topics=topics)

    answer = broker.ask(AddPartitionsToTxnRequest(transactions=[asked]), 5)

    row = answer.results_by_transaction[0].topic_results[0].results_by_partition[0]
    assert row.partition_error_code == ErrorCode.TRANSACTION_ABORTABLE


def test_before_it_has_heard_how_many_partitions_there_are_a_broker_coordinates_nobody() -> None:
    """By the number in its settings an id may fall on a partition that it leads and that is not the id's."""
    broker = Coordinator()
    planned = broker.node.config.transactions.transaction_state_log_num_partitions
    name = next(n for n in map(str, range(1_000)) if coordinating_partition(n, planned) == 0)
    request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000)
    assert broker.assigned_code(ME, isr=(ME,)) == 0
    broker.advance(LOAD_MS)

    assert broker.ask(request, 4).error_code == ErrorCode.NOT_COORDINATOR
    broker.tell_metadata(p0=ME)
    assert broker.ask(request, 4).error_code == ErrorCode.NONE


@pytest.mark.parametrize("two_phase", [True, False])
def test_two_phase_commit_is_refused_where_it_is_off(
    two_phase: bool, caplog: pytest.LogCaptureFixture
) -> None:
    broker = Coordinator().coordinate()
    broker.init()
    broker.add()

    answer = broker.keep(two_phase=two_phase)

    assert answer == InitProducerIdResponse(
        error_code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, producer_id=-1, producer_epoch=-1
    )
    assert "set transaction.two.phase.commit.enable=true" in caplog.text
    assert (broker.state(), broker.end()) == ("Ongoing", 0)


def test_a_prepared_transaction_is_loaded_resumed_and_ended(caplog: pytest.LogCaptureFixture) -> None:
    broker = Coordinator(transaction_two_phase_commit_enable="true").coordinate(replicas=(ME,))
    broker.init()
    broker.add()

    prepared = broker.keep()
    broker.follow(SECOND)
    assert "prepared transactions change hands partition=0 count=1 ids=('payments',)" in caplog.text
    broker.coordinate(replicas=(ME,))
    broker.advance(10_000_000)
    resumed = broker.keep(two_phase=False)
    stale = broker.end(epoch=1)
    committed = broker.end(epoch=2)

    assert [
        (
            each.error_code,
            each.producer_epoch,
            each.ongoing_txn_producer_id,
            each.ongoing_txn_producer_epoch,
        )
        for each in (prepared, resumed)
    ] == [(0, 1, PRODUCER_ID, 0), (0, 2, PRODUCER_ID, 0)]
    assert (stale, committed) == (ErrorCode.PRODUCER_FENCED, ErrorCode.NONE)
    assert [(each.producer_epoch, each.transaction_result) for each in broker.markers()] == [(2, True)]


def test_a_two_phase_time_out_is_not_looked_at_and_others_are() -> None:
    broker = Coordinator(transaction_two_phase_commit_enable="true").coordinate(replicas=(ME,))

    answers = [
        broker.ask(
            InitProducerIdRequest(
                transactional_id=NAME,
                transaction_timeout_ms=timeout_ms,
                enable_2pc=enable,
                keep_prepared_txn=keep,
            ),
            6,
        ).error_code
        for timeout_ms, enable, keep in (
            (0, True, False),
            (-1, True, True),
            (0, False, True),
            (900_001, False, False),
        )
    ]

    invalid = ErrorCode.INVALID_TRANSACTION_TIMEOUT
    assert answers == [ErrorCode.NONE, ErrorCode.NONE, invalid, invalid]


def test_prepared_and_fenced_transactions_are_counted() -> None:
    broker = Coordinator(transaction_two_phase_commit_enable="true").coordinate(replicas=(ME,))
    broker.init()
    broker.add()
    before = gauge(broker, "ottla_transactions_prepared_oldest_seconds")

    broker.keep()
    broker.advance(5_000)

    assert (before, gauge(broker, "ottla_transactions_prepared")) == (0, 1)
    assert gauge(broker, "ottla_transactions_prepared_oldest_seconds") >= 5
    broker.init()
    assert gauge(broker, "ottla_transactions_prepared") == 0
    assert gauge(broker, "ottla_transactions_fenced_total") == 1


def gauge(broker: Coordinator, name: str) -> float:
    (metric,) = [each for each in METRICS if each.name == name]
    return sum(sample.value for sample in metric.read(broker.node))


@pytest.mark.parametrize(
    ("highest", "expected"),
    [(6, ErrorCode.NONE), (5, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED), (None, ErrorCode.NONE)],
    ids=["fit", "apache", "silent"],
)
def test_nothing_is_promised_that_the_next_coordinator_would_not_keep(
    highest: int | None, expected: ErrorCode, caplog: pytest.LogCaptureFixture
) -> None:
    """A broker that does not answer does not stand in the way."""
    broker = Coordinator(transaction_two_phase_commit_enable="true").coordinate(replicas=(ME, SECOND))
    connection = broker.connect()
    request = InitProducerIdRequest(transactional_id=NAME, transaction_timeout_ms=1, enable_2pc=True)

    broker.send(connection, request, 6)
    broker.connect_links()
    if highest is None:
        broker.node.on_peer_lost(broker.last_request(ApiVersionsRequest)[0], "it went away")
        broker.settle()
    else:
        row = ApiVersion(api_key=ApiKey.INIT_PRODUCER_ID, min_version=0, max_version=highest)
        broker.answer_peer(ApiVersionsRequest, ApiVersionsResponse(api_keys=[row]))

    (answer,) = broker.take_answers(connection, InitProducerIdResponse, 6)
    assert answer.error_code == expected
    assert (f"brokers={SECOND}" in caplog.text) is (highest == 5)
