"""TxnOffsetCommit: verified with the transaction's coordinator, then pending until the marker."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.model.errors import ErrorCode
from ottla.model.internal_topics import OFFSETS_TOPIC
from ottla.wire.apis.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)
from ottla.wire.apis.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.apis.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from support.bench.led_broker import SECOND, TOPIC
from unit.broker.apis.transactions.test_transactional_records import end, ended, tell_of_transaction_topic
from unit.broker.coordinating.test_moves import GROUP, LOAD_MS, Coordinator

PRODUCER_ID = 9
E = ErrorCode


def a_coordinator() -> Coordinator:
    """It leads the group's offsets; broker 2 coordinates the transaction."""
    broker = Coordinator()
    broker.lead_offsets()
    broker.advance(LOAD_MS)
    tell_of_transaction_topic(broker)
    return broker


def send(broker: Coordinator, version: int = 4, topic: str = TOPIC, **fields: Any) -> int:
    rows = [TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=7)]
    given: dict[str, Any] = {"transactional_id": "payments", "group_id": GROUP, "producer_id": PRODUCER_ID}
    request = TxnOffsetCommitRequest(
        **{**given, **fields}, topics=[TxnOffsetCommitRequestTopic(name=topic, partitions=rows)]
    )
    connection = broker.connect()
    broker.send(connection, request, version)
    return connection


def code(broker: Coordinator, connection: int, version: int = 4) -> ErrorCode | None:
    answers = broker.take_answers(connection, TxnOffsetCommitResponse, version)
    return ErrorCode(answers[0].topics[0].partitions[0].error_code) if answers else None


def coordinator_says(broker: Coordinator, error: ErrorCode = E.NONE) -> None:
    broker.connect_links()
    if not broker.peer_requests(AddPartitionsToTxnRequest):
        versions = [ApiVersion(api_key=24, min_version=0, max_version=5)]
        broker.answer_peer(ApiVersionsRequest, ApiVersionsResponse(api_keys=versions))
    [asked] = broker.last_request(AddPartitionsToTxnRequest)[3].transactions
    assert (asked.transactional_id, asked.verify_only, asked.topics[0].name) == (
        "payments",
        True,
        OFFSETS_TOPIC,
    )
    row = AddPartitionsToTxnPartitionResult(partition_index=0, partition_error_code=error)
    topic = AddPartitionsToTxnTopicResult(name=OFFSETS_TOPIC, results_by_partition=[row])
    result = AddPartitionsToTxnResult(transactional_id="payments", topic_results=[topic])
    broker.answer_peer(AddPartitionsToTxnRequest, AddPartitionsToTxnResponse(results_by_transaction=[result]))


def test_an_offset_is_pending_until_its_marker() -> None:
    broker = a_coordinator()
    broker.commit(3)
    waiting = send(broker)
    assert code(broker, waiting) is None

    coordinator_says(broker)

    assert code(broker, waiting) is E.NONE
    assert broker.committed() == 3
    assert broker.committed(require_stable=True) is E.UNSTABLE_OFFSET_COMMIT
    assert ended(broker, end(broker, commit=True, topic=OFFSETS_TOPIC)) == 0
    assert broker.committed(require_stable=True) == 7


def test_once_the_transaction_is_open_nobody_is_asked() -> None:
    broker = a_coordinator()
    send(broker)
    coordinator_says(broker)

    assert code(broker, send(broker)) is E.NONE
    assert len(broker.peer_requests(AddPartitionsToTxnRequest)) == 1


def test_a_transaction_that_ended_during_the_verification_is_not_begun_again() -> None:
    """Its offsets would stay pending for ever (KAFKA-14884)."""
    broker = a_coordinator()
    waiting = send(broker)
    assert ended(broker, end(broker, commit=False, topic=OFFSETS_TOPIC)) == 0

    coordinator_says(broker)

    assert code(broker, waiting) is E.INVALID_TXN_STATE
    assert broker.log.last_stable_offset == broker.log.end_offset


@pytest.mark.parametrize(
    ("verdict", "version", "expected"),
    [
        (E.TRANSACTION_ABORTABLE, 4, E.TRANSACTION_ABORTABLE),
        (E.TRANSACTION_ABORTABLE, 3, E.INVALID_TXN_STATE),
        (E.PRODUCER_FENCED, 4, E.INVALID_PRODUCER_EPOCH),
        (E.PRODUCER_FENCED, 0, E.INVALID_PRODUCER_EPOCH),
        (E.INVALID_PRODUCER_ID_MAPPING, 4, E.INVALID_PRODUCER_ID_MAPPING),
        (E.CONCURRENT_TRANSACTIONS, 4, E.CONCURRENT_TRANSACTIONS),
        (E.NOT_COORDINATOR, 4, E.NOT_COORDINATOR),
        (E.COORDINATOR_LOAD_IN_PROGRESS, 2, E.COORDINATOR_LOAD_IN_PROGRESS),
        (E.COORDINATOR_LOAD_IN_PROGRESS, 1, E.COORDINATOR_NOT_AVAILABLE),
    ],
)
def test_the_coordinators_verdict_in_the_words_of_this_api(
    verdict: ErrorCode, version: int, expected: ErrorCode
) -> None:
    broker = a_coordinator()
    waiting = send(broker, version)

    coordinator_says(broker, verdict)

    assert code(broker, waiting, version) is expected
    assert broker.committed(require_stable=True) == -1


def test_what_needs_no_verification_is_refused_first() -> None:
    broker = a_coordinator()

    assert code(broker, send(broker, topic="unknown")) is E.UNKNOWN_TOPIC_OR_PARTITION
    assert code(broker, send(broker, group_id="")) is E.INVALID_GROUP_ID
    broker.follow(SECOND)
    assert code(broker, send(broker)) is E.NOT_COORDINATOR
    assert broker.peer_requests(AddPartitionsToTxnRequest) == []


def test_without_a_known_coordinator_the_client_comes_again() -> None:
    broker = Coordinator()
    broker.lead_offsets()
    broker.advance(LOAD_MS)

    assert code(broker, send(broker)) is E.COORDINATOR_NOT_AVAILABLE


def test_a_member_of_another_generation_may_not_commit() -> None:
    """KIP-447: who was replaced in its group must not commit what it has read."""
    broker = a_coordinator()
    waiting = send(broker, generation_id=3, member_id="gone")

    coordinator_says(broker)

    assert code(broker, waiting) is E.UNKNOWN_MEMBER_ID
