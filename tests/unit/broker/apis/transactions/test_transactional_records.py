"""Transactional records on a leader: verification, markers, what committed readers see."""

import pytest

from ottla.model.errors import ErrorCode
from ottla.wire.apis.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)
from ottla.wire.apis.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.apis.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from ottla.wire.apis.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from ottla.wire.apis.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from support.bench.led_broker import CONTROLLER_EPOCH, ME, SECOND, TOPIC, LedBroker, a_batch, headers
from support.bench.node_bench import a_config

PRODUCER = {"producer_id": 9, "producer_epoch": 0, "is_transactional": True}


def an_unverifying_leader(isr: tuple[int, ...] = (ME,)) -> LedBroker:
    """Without KIP-890's check, for tests that are about something else."""
    return LedBroker(a_config(transaction_partition_verification_enable="false")).lead(isr=isr)


def transact(broker: LedBroker, *values: str, sequence: int = 0, version: int = 11) -> int:
    batch = a_batch(*values, base_sequence=sequence, **PRODUCER)
    return broker.produce(batch, transactional_id="payments", version=version)


def end(
    broker: LedBroker, *, commit: bool, epoch: int = 0, coordinator_epoch: int = 1, topic: str = TOPIC
) -> int:
    marker = WritableTxnMarker(
        producer_id=9,
        producer_epoch=epoch,
        transaction_result=commit,
        coordinator_epoch=coordinator_epoch,
        topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=(0,))],
    )
    connection = broker.connect()
    broker.send(connection, WriteTxnMarkersRequest(markers=[marker]), 1)
    return connection


def ended(broker: LedBroker, connection: int) -> int | None:
    answers = broker.take_answers(connection, WriteTxnMarkersResponse, 1)
    return answers[0].markers[0].topics[0].partitions[0].error_code if answers else None


def test_committed_readers_stop_at_an_open_transaction() -> None:
    broker = an_unverifying_leader()
    broker.produce_now(a_batch("before"))
    transact(broker, "a", "b")
    broker.produce_now(a_batch("after"))

    data = broker.fetch_now(0, isolation=1)

    assert (data.high_watermark, data.last_stable_offset) == (4, 1)
    assert [each.base_offset for each in headers(data)] == [0]
    assert data.aborted_transactions == []
    assert len(headers(broker.fetch_now(0))) == 3


def test_a_commit_marker_lets_committed_readers_go_on() -> None:
    broker = an_unverifying_leader()
    transact(broker, "a", "b")
    consumer = broker.fetch(0, isolation=1, max_wait_ms=5_000)
    assert broker.fetched(consumer) is None

    assert ended(broker, end(broker, commit=True)) == 0

    answer = broker.fetched(consumer)
    assert answer is not None
    data = answer.responses[0].partitions[0]
    assert [each.is_control for each in headers(data)] == [False, True]
    assert data.aborted_transactions == []


def test_an_aborted_transaction_is_named_to_committed_readers() -> None:
    broker = an_unverifying_leader()
    broker.produce_now(a_batch("before"))
    transact(broker, "a", "b")
    end(broker, commit=False)

    data = broker.fetch_now(0, isolation=1)

    assert data.last_stable_offset == 4
    assert [(each.producer_id, each.first_offset) for each in data.aborted_transactions or []] == [(9, 1)]


def test_a_marker_is_answered_once_it_is_committed() -> None:
    broker = an_unverifying_leader(isr=(ME, SECOND))
    transact(broker, "a")

    marker = end(broker, commit=True)
    assert ended(broker, marker) is None
    broker.fetch_now(2, replica=SECOND)

    assert ended(broker, marker) == 0
    assert broker.log.last_stable_offset == 2


def test_the_last_stable_offset_waits_for_the_marker_to_be_replicated() -> None:
    broker = an_unverifying_leader(isr=(ME, SECOND))
    transact(broker, "a")
    broker.fetch_now(1, replica=SECOND)

    end(broker, commit=True)

    assert (broker.log.high_watermark, broker.log.last_stable_offset) == (1, 0)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"epoch": -1}, ErrorCode.INVALID_PRODUCER_EPOCH),
        ({"topic": "unknown"}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_markers_that_are_refused(settings: dict[str, object], expected: ErrorCode) -> None:
    broker = an_unverifying_leader()
    transact(broker, "a")

    assert ended(broker, end(broker, commit=True, **settings)) == expected  # type: ignore[arg-type]


def test_an_older_coordinator_is_fenced() -> None:
    broker = an_unverifying_leader()
    transact(broker, "a")
    end(broker, commit=True, coordinator_epoch=5)

    assert (
        ended(broker, end(broker, commit=True, coordinator_epoch=4))
        == ErrorCode.TRANSACTION_COORDINATOR_FENCED
    )


def test_a_follower_writes_no_marker() -> None:
    broker = an_unverifying_leader().follow()

    assert ended(broker, end(broker, commit=True)) == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_transactional_batch_without_a_transactional_id_is_refused() -> None:
    broker = an_unverifying_leader()

    answer = broker.produce_now(a_batch("a", base_sequence=0, **PRODUCER))

    assert answer.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


# --- verification ---


def tell_of_transaction_topic(broker: LedBroker) -> None:
    state = UpdateMetadataPartitionState(partition_index=0, leader=SECOND, isr=(SECOND,), replicas=(SECOND,))
    topic = UpdateMetadataTopicState(
        topic_name="__transaction_state", topic_id=bytes(range(2, 18)), partition_states=[state]
    )
    brokers = [
        UpdateMetadataBroker(
            id=each, endpoints=[UpdateMetadataEndpoint(port=9092, host=f"host{each}", listener="PLAINTEXT")]
        )
        for each in broker.brokers
    ]
    request = UpdateMetadataRequest(
        controller_id=SECOND, controller_epoch=CONTROLLER_EPOCH, topic_states=[topic], live_brokers=brokers
    )
    assert broker.ask(request, 8).error_code == 0


def a_verifying_leader() -> LedBroker:
    broker = LedBroker().lead(isr=(ME,))
    tell_of_transaction_topic(broker)
    return broker


def coordinator_answers(broker: LedBroker, error: int = 0, partition: int = 0) -> AddPartitionsToTxnRequest:
    broker.connect_links()
    if not broker.peer_requests(AddPartitionsToTxnRequest):
        versions = [ApiVersion(api_key=24, min_version=0, max_version=5)]
        broker.answer_peer(ApiVersionsRequest, ApiVersionsResponse(api_keys=versions))
    request = broker.last_request(AddPartitionsToTxnRequest)[3]
    row = AddPartitionsToTxnPartitionResult(partition_index=partition, partition_error_code=error)
    result = AddPartitionsToTxnResult(
        transactional_id="payments",
        topic_results=[AddPartitionsToTxnTopicResult(name=TOPIC, results_by_partition=[row])],
    )
    broker.answer_peer(AddPartitionsToTxnRequest, AddPartitionsToTxnResponse(results_by_transaction=[result]))
    assert isinstance(request, AddPartitionsToTxnRequest)
    return request


def test_the_first_batch_of_a_transaction_waits_for_its_coordinators_word() -> None:
    broker = a_verifying_leader()
    waiting = transact(broker, "a")
    assert broker.produced(waiting) is None
    assert broker.log.end_offset == 0

    request = coordinator_answers(broker)

    [transaction] = request.transactions
    assert (transaction.transactional_id, transaction.producer_id, transaction.verify_only) == (
        "payments",
        9,
        True,
    )
    answer = broker.produced(waiting)
    assert answer is not None
    assert (answer.error_code, answer.base_offset) == (0, 0)


def test_later_batches_of_the_transaction_need_no_word() -> None:
    broker = a_verifying_leader()
    transact(broker, "a")
    coordinator_answers(broker)

    answer = broker.produced(transact(broker, "b", sequence=1))

    assert answer is not None
    assert answer.error_code == 0


@pytest.mark.parametrize(
    ("error", "version", "expected", "has_text"),
    [
        (ErrorCode.TRANSACTION_ABORTABLE, 10, ErrorCode.INVALID_TXN_STATE, True),
        (ErrorCode.TRANSACTION_ABORTABLE, 11, ErrorCode.TRANSACTION_ABORTABLE, False),
        (ErrorCode.CONCURRENT_TRANSACTIONS, 11, ErrorCode.NOT_ENOUGH_REPLICAS, True),
        (ErrorCode.PRODUCER_FENCED, 11, ErrorCode.INVALID_PRODUCER_EPOCH, False),
        (ErrorCode.INVALID_PRODUCER_ID_MAPPING, 11, ErrorCode.INVALID_PRODUCER_ID_MAPPING, False),
    ],
)
def test_the_coordinators_refusal_in_the_words_of_produce(
    error: ErrorCode, version: int, expected: ErrorCode, has_text: bool
) -> None:
    broker = a_verifying_leader()
    waiting = transact(broker, "a", version=version)

    coordinator_answers(broker, int(error))

    answer = broker.produced(waiting, version)
    assert answer is not None
    assert answer.error_code == expected
    assert (answer.error_message is not None) == has_text
    assert broker.log.end_offset == 0


def test_a_partition_that_the_coordinator_says_nothing_of_is_not_written_to() -> None:
    broker = a_verifying_leader()
    waiting = transact(broker, "a")

    coordinator_answers(broker, partition=5)

    answer = broker.produced(waiting)
    assert answer is not None
    assert answer.error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    assert broker.log.end_offset == 0


def test_without_a_known_coordinator_the_producer_is_told_to_try_again() -> None:
    broker = LedBroker().lead(isr=(ME,))

    answer = broker.produced(transact(broker, "a"))

    assert answer is not None
    assert answer.error_code == ErrorCode.NOT_ENOUGH_REPLICAS


def test_what_waits_for_verification_is_not_the_lent_frame() -> None:
    """The frame is reused after the call: what was kept must be a copy."""
    broker = a_verifying_leader()
    transact(broker, "a" * 20)
    broker.produce_now(a_batch("b" * 500))

    coordinator_answers(broker)

    assert broker.fetch_now(1).records is not None
    assert [each.record_count for each in headers(broker.fetch_now(0))] == [1, 1]


def transact_on_two(broker: LedBroker, *sequences: int) -> int:
    """One request of the transaction for partitions 0 and 1."""
    data = [
        PartitionProduceData(index=index, records=a_batch("x", base_sequence=sequence, **PRODUCER))
        for index, sequence in enumerate(sequences)
    ]
    request = ProduceRequest(
        transactional_id="payments",
        acks=1,
        timeout_ms=1_000,
        topic_data=[TopicProduceData(name=TOPIC, partition_data=data)],
    )
    connection = broker.connect()
    broker.send(connection, request, 11)
    return connection


def rows(broker: LedBroker, connection: int) -> list[PartitionProduceResponse]:
    [answer] = broker.take_answers(connection, ProduceResponse, 11)
    found: list[PartitionProduceResponse] = answer.responses[0].partition_responses
    return found


def test_a_batch_whose_transaction_ended_while_another_was_verified_is_refused() -> None:
    """Or it would begin a transaction that nobody ends, and committed readers would stop there for ever."""
    broker = a_verifying_leader()
    broker.tell_metadata(p1=ME)
    assert broker.assigned_code(ME, isr=(ME,), partition=1) == 0
    transact(broker, "a")
    coordinator_answers(broker)
    waiting = transact_on_two(broker, 1, 0)
    assert ended(broker, end(broker, commit=False)) == 0

    coordinator_answers(broker, partition=1)

    assert [each.error_code for each in rows(broker, waiting)] == [ErrorCode.INVALID_TXN_STATE, 0]
    assert broker.log.end_offset == broker.log.last_stable_offset == 2


def test_a_partition_that_was_not_led_when_its_batch_came_is_not_written_to() -> None:
    """It may be led by the time the coordinator has answered for others; nobody asked about this one."""
    broker = a_verifying_leader()
    broker.tell_metadata(p1=SECOND)
    waiting = transact_on_two(broker, 0, 0)
    broker.tell_metadata(p1=ME)
    assert broker.assigned_code(ME, isr=(ME,), partition=1) == 0

    request = coordinator_answers(broker)

    assert request.transactions[0].topics[0].partitions == (0,)
    assert [each.error_code for each in rows(broker, waiting)] == [0, ErrorCode.NOT_LEADER_OR_FOLLOWER]


def test_a_marker_that_waits_for_a_follower_is_answered_before_its_coordinator_gives_up() -> None:
    """Otherwise the whole request is lost, with the markers of other partitions that are written."""
    broker = an_unverifying_leader(isr=(ME, SECOND))
    transact(broker, "a")

    connection = end(broker, commit=True)
    assert ended(broker, connection) is None
    broker.advance(a_config().connections.request_timeout_ms // 2)

    assert ended(broker, connection) == ErrorCode.REQUEST_TIMED_OUT
