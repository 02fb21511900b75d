"""What a producer does after an error inside its transactions: one table, as Kafka's Java client has it."""

from collections.abc import Iterable
from enum import Enum

from ottla.client.errors import (
    AbortableError,
    BrokerError,
    ClientError,
    ConnectionLost,
    DeliveryFailed,
    FatalError,
    ProducerFenced,
    TransactionFailed,
    UnsupportedByBroker,
)
from ottla.model.errors import ErrorCode


class Step(Enum):
    """What was asked, in the order of the table's columns."""

    FIND = "FindCoordinator"
    INIT = "InitProducerId"
    ADD_PARTITIONS = "AddPartitionsToTxn"
    PRODUCE = "Produce"
    ADD_OFFSETS = "AddOffsetsToTxn"
    COMMIT_OFFSETS = "TxnOffsetCommit"
    END = "EndTxn"


class Course(Enum):
    """What to do."""

    RETRY = "r"
    FIND_AGAIN = "c"
    """Look the coordinator up again, then retry."""
    ABORT = "a"
    """The transaction must be aborted; the producer can go on."""
    STOP = "f"
    """Fatal: the producer cannot go on."""


_OTHERS = "f f a a f f f"
"""Codes without a row; those that are retriable in general are retried by all but Produce."""

# fmt: off
_TABLE: dict[ErrorCode, str] = {
    # Produce comes here with what it did not or could not retry.
    #                                                  F I A P O T E
    ErrorCode.REQUEST_TIMED_OUT:                     "r r r a r c r",
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:          "r r r a r r r",
    ErrorCode.COORDINATOR_NOT_AVAILABLE:             "r c c a c c c",
    ErrorCode.NOT_COORDINATOR:                       "r c c a c c c",
    ErrorCode.CONCURRENT_TRANSACTIONS:               "r r r a r r r",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:            "r r r a r r r",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED:            "f f a a f f f",
    ErrorCode.GROUP_AUTHORIZATION_FAILED:            "a f a a a a f",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED:          "f f a f f f f",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "f f f f f f f",
    ErrorCode.UNSUPPORTED_VERSION:                   "f f f f f f f",
    ErrorCode.UNKNOWN_MEMBER_ID:                     "f f a a f a f",
    ErrorCode.ILLEGAL_GENERATION:                    "f f a a f a f",
    ErrorCode.FENCED_INSTANCE_ID:                    "f f a a f a f",
    ErrorCode.INVALID_TXN_STATE:                     "f f f a f f f",
    ErrorCode.INVALID_PRODUCER_ID_MAPPING:           "f f a a a f a",
    ErrorCode.UNKNOWN_PRODUCER_ID:                   "f f a a a f a",
    ErrorCode.INVALID_PRODUCER_EPOCH:                "f f f a f f f",
    ErrorCode.PRODUCER_FENCED:                       "f f f f f f f",
    ErrorCode.TRANSACTION_ABORTABLE:                 "a a a a a a a",
}
# fmt: on


def course_after(step: Step, error: ClientError) -> Course:
    """The table's course; a lost connection to a coordinator is retried with a new look-up."""
    if isinstance(error, ConnectionLost):
        return Course.ABORT if step is Step.PRODUCE else Course.FIND_AGAIN
    if not isinstance(error, BrokerError):
        return Course.ABORT if step is Step.PRODUCE else Course.STOP
    row = _TABLE.get(error.code)
    if row is None:
        if error.is_retriable and step is not Step.PRODUCE:
            return Course.RETRY
        row = _OTHERS
    return Course(row.split()[list(Step).index(step)])


def decisive(step: Step, codes: Iterable[int]) -> BrokerError | None:
    """The worst of an answer's errors; ``None`` if there is none.

    OPERATION_NOT_ATTEMPTED only says that another partition has an error.
    """
    errors = [BrokerError(code, step.value) for code in codes if code]
    others = [error for error in errors if error.code != ErrorCode.OPERATION_NOT_ATTEMPTED]
    return max(others or errors, key=lambda error: _SEVERITY[course_after(step, error)], default=None)


_SEVERITY = {Course.RETRY: 0, Course.FIND_AGAIN: 1, Course.ABORT: 2, Course.STOP: 3}


def as_raised(step: Step, error: ClientError) -> TransactionFailed:
    """The error that a program gets, by what it can do: abort, or close the producer."""
    cause = error.cause if isinstance(error, DeliveryFailed) else error
    if course_after(step, cause) is not Course.STOP:
        return AbortableError(step.value, error)
    is_fenced = isinstance(cause, BrokerError) and cause.code in _FENCED
    return (ProducerFenced if is_fenced else FatalError)(step.value, error)


def is_refused_two_phase_commit(error: TransactionFailed) -> bool:
    """Whether the coordinator refuses to keep prepared transactions, or has never heard of them."""
    cause = error.cause
    code = cause.code if isinstance(cause, BrokerError) else None
    return isinstance(cause, UnsupportedByBroker) or code is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


_FENCED = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED})
