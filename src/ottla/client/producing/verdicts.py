"""What to do with a batch after a broker's error."""

from enum import Enum, auto

from ottla.client.errors import BrokerError, ClientError
from ottla.model.errors import ErrorCode

STALE_LEADER = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_ID,
    }
)
"""Errors after which metadata must be refreshed before a retry."""


class Verdict(Enum):
    """What to do with a batch."""

    DELIVERED = auto()
    RETRY = auto()
    RETRY_AS_NEW_PRODUCER = auto()
    """The broker does not know the producer's sequence: renumber the partition's batches, then retry."""
    SPLIT = auto()
    FAIL = auto()


def judge(error: ClientError | None, record_count: int, is_first: bool) -> Verdict:
    """``is_first``: every earlier batch is done."""
    if error is None:
        return Verdict.DELIVERED
    if isinstance(error, BrokerError):
        match error.code:
            case ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
                return Verdict.DELIVERED
            case ErrorCode.MESSAGE_TOO_LARGE if record_count > 1:
                return Verdict.SPLIT
            case (
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
                | ErrorCode.UNKNOWN_PRODUCER_ID
                | ErrorCode.INVALID_PRODUCER_EPOCH
            ):
                return Verdict.RETRY_AS_NEW_PRODUCER if is_first else Verdict.RETRY
    return Verdict.RETRY if error.is_retriable else Verdict.FAIL


def is_stale_leader(error: ClientError) -> bool:
    """Whether the metadata that named the leader may be stale."""
    return not isinstance(error, BrokerError) or error.code in STALE_LEADER
