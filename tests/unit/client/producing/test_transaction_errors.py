"""The one table: what a producer does after an error inside a transaction, as Kafka's Java client does."""

import pytest

from ottla.client.errors import (
    AbortableError,
    BrokerError,
    ConnectionLost,
    DeliveryFailed,
    FatalError,
    ProducerFenced,
    UnsupportedByBroker,
)
from ottla.client.producing.transaction_errors import Course, Step, as_raised, course_after, decisive
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition

COORDINATOR_STEPS = [step for step in Step if step is not Step.PRODUCE]


@pytest.mark.parametrize("step", COORDINATOR_STEPS)
@pytest.mark.parametrize(
    "code",
    [ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NETWORK_EXCEPTION],
)
def test_what_passes_is_retried_at_the_same_coordinator(step: Step, code: ErrorCode) -> None:
    assert course_after(step, BrokerError(code)) is Course.RETRY


@pytest.mark.parametrize("step", [step for step in COORDINATOR_STEPS if step is not Step.FIND])
@pytest.mark.parametrize("code", [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE])
def test_a_coordinator_that_moved_is_looked_up_again(step: Step, code: ErrorCode) -> None:
    assert course_after(step, BrokerError(code)) is Course.FIND_AGAIN
    assert course_after(step, ConnectionLost("gone")) is Course.FIND_AGAIN


@pytest.mark.parametrize("step", Step)
def test_the_code_for_abortable_errors_is_abortable_everywhere(step: Step) -> None:
    assert course_after(step, BrokerError(ErrorCode.TRANSACTION_ABORTABLE)) is Course.ABORT


@pytest.mark.parametrize("step", Step)
def test_a_fenced_producer_is_finished_everywhere(step: Step) -> None:
    assert isinstance(as_raised(step, BrokerError(ErrorCode.PRODUCER_FENCED)), ProducerFenced)


def test_an_old_epoch_is_fatal_but_at_a_leader_whose_coordinator_has_the_last_word() -> None:
    raised = {step: as_raised(step, BrokerError(ErrorCode.INVALID_PRODUCER_EPOCH)) for step in Step}

    assert [step for step in Step if isinstance(raised[step], AbortableError)] == [Step.PRODUCE]
    assert all(isinstance(raised[step], ProducerFenced) for step in COORDINATOR_STEPS)


@pytest.mark.parametrize(
    ("code", "abortable"),
    [
        (ErrorCode.INVALID_TXN_STATE, {Step.PRODUCE}),
        (ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, set()),
        (
            ErrorCode.INVALID_PRODUCER_ID_MAPPING,
            {Step.ADD_PARTITIONS, Step.PRODUCE, Step.ADD_OFFSETS, Step.END},
        ),
        (ErrorCode.ILLEGAL_GENERATION, {Step.ADD_PARTITIONS, Step.PRODUCE, Step.COMMIT_OFFSETS}),
        (ErrorCode.UNKNOWN_MEMBER_ID, {Step.ADD_PARTITIONS, Step.PRODUCE, Step.COMMIT_OFFSETS}),
        (ErrorCode.FENCED_INSTANCE_ID, {Step.ADD_PARTITIONS, Step.PRODUCE, Step.COMMIT_OFFSETS}),
        (ErrorCode.INVALID_REQUEST, {Step.ADD_PARTITIONS, Step.PRODUCE}),
    ],
)
def test_what_else_is_final_is_abortable_here_and_fatal_there(code: ErrorCode, abortable: set[Step]) -> None:
    courses = {step: course_after(step, BrokerError(code)) for step in Step}

    assert {step for step, course in courses.items() if course is Course.ABORT} == abortable
    assert {step for step, course in courses.items() if course is Course.STOP} == set(Step) - abortable


def test_a_broker_that_is_too_old_is_fatal() -> None:
    assert isinstance(as_raised(Step.INIT, UnsupportedByBroker("no v3")), FatalError)


def test_the_cause_of_a_failed_delivery_decides_and_the_message_says_what_to_do() -> None:
    cause = BrokerError(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)

    raised = as_raised(Step.PRODUCE, DeliveryFailed(TopicPartition("orders", 0), cause, 2))

    assert isinstance(raised, AbortableError)
    assert "orders-0" in str(raised)
    assert "abort the transaction" in str(raised)


def test_the_worst_error_of_an_answer_decides_but_not_that_nothing_was_attempted() -> None:
    not_attempted, unknown = ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def code_of(*codes: int) -> ErrorCode | None:
        error = decisive(Step.ADD_PARTITIONS, codes)
        return error.code if error is not None else None

    assert code_of(0, 0) is None
    assert code_of(not_attempted, unknown) == unknown
    assert code_of(unknown, ErrorCode.TOPIC_AUTHORIZATION_FAILED) == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert code_of(not_attempted) == not_attempted
