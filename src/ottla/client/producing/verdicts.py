"""What a broker's answer means for a batch."""

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
"""Errors that say: ask for metadata before you try again."""


class Verdict(Enum):
    """What to do with a batch."""

    DELIVERED = auto()
    RETRY = auto()
    RETRY_AS_NEW_PRODUCER = auto()
    """The broker has lost track of the producer: number the partition's batches anew, then try again."""
    SPLIT = auto()
    FAIL = auto()


def judge(error: ClientError | None, record_count: int, is_first_in_line: bool) -> Verdict:
    """``is_first_in_line``: no batch before this one is still undecided."""
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
                return Verdict.RETRY_AS_NEW_PRODUCER if is_first_in_line else Verdict.RETRY
    return Verdict.RETRY if error.is_retriable else Verdict.FAIL


def is_stale_leader(error: ClientError) -> bool:
    """Whether the metadata that led us to the broker is out of date."""
    return not isinstance(error, BrokerError) or error.code in STALE_LEADER
