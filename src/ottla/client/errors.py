"""What can go wrong for a user of the client. Everything raised on purpose is a ``ClientError``."""

from ottla.model.errors import RETRIABLE, ErrorCode
from ottla.model.ids import TopicPartition


class ClientError(Exception):
    """Base of all the client's errors."""

    @property
    def is_retriable(self) -> bool:
        """Whether the same thing, tried again later, may succeed."""
        return False


class ConnectionLost(ClientError):
    """A broker could not be reached, or went away before it answered."""

    @property
    def is_retriable(self) -> bool:
        return True


class RequestTimedOut(ConnectionLost):
    """A broker did not answer within ``request.timeout.ms``."""


class UnsupportedByBroker(ClientError):
    """The broker speaks no version of an API that could carry the request."""


class Unsendable(ClientError):
    """A request says what no message of the protocol can: a number or a name in it is too large."""


class BrokerError(ClientError):
    """A broker answered with an error code."""

    def __init__(self, code: int, detail: str | None = None) -> None:
        self.code = ErrorCode(code)
        self.detail = detail
        super().__init__(f"{self.code.name}: {detail}" if detail else self.code.name)

    @property
    def is_retriable(self) -> bool:
        return self.code in RETRIABLE


class TimedOut(ClientError):
    """An operation ran out of time; the message names the last cause."""

    def __init__(self, what: str, timeout_ms: int, cause: ClientError | None) -> None:
        self.cause: ClientError | None = cause.cause if isinstance(cause, TimedOut) else cause
        """Never that a part of it ran out of time as well."""
        last = f"; last cause: {self.cause}" if self.cause else ""
        super().__init__(f"{what}: not done within {timeout_ms} ms{last}")

    @property
    def is_retriable(self) -> bool:
        return True


class DeliveryFailed(ClientError):
    """A record was not delivered: which partition, why at last, and after how many attempts."""

    def __init__(self, partition: TopicPartition, cause: ClientError, attempts: int) -> None:
        self.partition = partition
        self.cause = cause
        self.attempts = attempts
        times = "1 attempt" if attempts == 1 else f"{attempts} attempts"
        super().__init__(f"{partition}: not delivered after {times}; last cause: {cause}")


class RecordTooLarge(ClientError):
    """A record is larger than ``max.request.size``."""


class BufferFull(ClientError):
    """The producer holds ``buffer.memory`` bytes that no broker has taken yet."""

    @property
    def is_retriable(self) -> bool:
        return True


class NoSuchPartition(ClientError):
    """A record names a partition that its topic does not have."""


class OffsetOutOfRange(ClientError):
    """A position lies outside the log, and ``auto.offset.reset`` is ``none``."""

    def __init__(self, partition: TopicPartition, offset: int) -> None:
        self.partition = partition
        self.offset = offset
        super().__init__(f"{partition}: offset {offset} is out of range")


class LogTruncated(OffsetOutOfRange):
    """Records that were read are gone from the log (an unclean election), and there is no reset.

    ``end_offset`` is where the log parts from what was read.
    """

    def __init__(self, partition: TopicPartition, offset: int, end_offset: int) -> None:
        super().__init__(partition, offset)
        self.end_offset = end_offset
        self.args = (f"{partition}: read up to {offset}, but the log was cut at {end_offset}",)


class CorruptBatch(ClientError):
    """A broker sent a batch whose bytes are not those that were written."""

    def __init__(self, partition: TopicPartition, reason: str) -> None:
        self.partition = partition
        super().__init__(f"{partition}: {reason}")


class ClientClosed(ClientError):
    """The client was closed before the operation was done."""
