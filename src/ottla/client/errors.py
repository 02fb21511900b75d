"""The errors that a user of the client can get. All of them are a ``ClientError``."""

from ottla.model.errors import RETRIABLE, ErrorCode
from ottla.model.ids import TopicPartition


class ClientError(Exception):
    """Base of all the client's errors."""

    @property
    def is_retriable(self) -> bool:
        """Whether the same operation may succeed later."""
        return False


class ConnectionLost(ClientError):
    """A broker could not be reached, or went away before it answered."""

    @property
    def is_retriable(self) -> bool:
        return True


class RequestTimedOut(ConnectionLost):
    """A broker did not answer within ``request.timeout.ms``."""


class LoginFailed(ClientError):
    """A broker does not let us in: mechanism, user or password are wrong, or it asks for none."""


class UnsupportedByBroker(ClientError):
    """The broker has no version of the API that can carry the request."""


class Unsendable(ClientError):
    """A number or a name in a request is too large for Kafka's protocol."""


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
        """The cause of a nested ``TimedOut``, never the ``TimedOut`` itself."""
        last = f"; last cause: {self.cause}" if self.cause else ""
        super().__init__(f"{what}: not done within {timeout_ms} ms{last}")

    @property
    def is_retriable(self) -> bool:
        return True


class DeliveryFailed(ClientError):
    """A record was not delivered: its partition, the last cause, and the number of attempts."""

    def __init__(self, partition: TopicPartition, cause: ClientError, attempts: int) -> None:
        self.partition = partition
        self.cause = cause
        self.attempts = attempts
        times = "1 attempt" if attempts == 1 else f"{attempts} attempts"
        super().__init__(f"{partition}: not delivered after {times}; last cause: {cause}")


class TransactionFailed(ClientError):
    """A transaction cannot go on as it is."""

    next_step = ""

    def __init__(self, where: str, cause: ClientError) -> None:
        self.cause = cause
        super().__init__(f"{where}: {cause}; {self.next_step}")


class AbortableError(TransactionFailed):
    """The transaction cannot be committed: abort it, and begin another."""

    next_step = "abort the transaction, then begin another"


class FatalError(TransactionFailed):
    """The producer cannot be used any more."""

    next_step = "close this producer and make a new one"


class ProducerFenced(FatalError):
    """Another producer has taken over the transactional id, or the transaction took too long."""

    next_step = (
        "another producer has taken over the transactional id, or the transaction took longer than"
        " transaction.timeout.ms: close this producer"
    )


class TwoPhaseCommitRefused(ClientError):
    """The coordinator keeps no prepared transactions; what was sent is still in the open transaction."""

    def __init__(self, cause: ClientError) -> None:
        self.cause = cause
        super().__init__(
            f"the coordinator keeps no prepared transactions ({cause}): set"
            " transaction.two.phase.commit.enable=true on every broker; Apache Kafka 3.9 has no such setting"
        )


class TransactionAborted(ClientError):
    """A record was not sent because its transaction was aborted."""


class WrongTransactionState(ClientError):
    """A method of transactions was called out of turn; the message names the one that comes first."""


class RecordTooLarge(ClientError):
    """A record is larger than ``max.request.size``."""


class BufferFull(ClientError):
    """The producer holds ``buffer.memory`` bytes that are not delivered yet."""

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
    """Records that were read are gone from the log (unclean election), and ``auto.offset.reset`` is ``none``.

    ``end_offset`` is where the log differs from what was read.
    """

    def __init__(self, partition: TopicPartition, offset: int, end_offset: int) -> None:
        super().__init__(partition, offset)
        self.end_offset = end_offset
        self.args = (f"{partition}: read up to {offset}, but the log was cut at {end_offset}",)


class CorruptBatch(ClientError):
    """A broker sent a batch that cannot be parsed or has a wrong checksum."""

    def __init__(self, partition: TopicPartition, reason: str) -> None:
        self.partition = partition
        super().__init__(f"{partition}: {reason}")


class ClientClosed(ClientError):
    """The client was closed before the operation was done."""
