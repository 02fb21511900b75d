"""Answers that wait for replication: produce requests with acks=all, and DeleteRecords."""

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from ottla.broker.clients.connections import Connection
from ottla.broker.clients.request import Request
from ottla.broker.replicas.partition import Partition
from ottla.broker.runtime.parked import Waiting
from ottla.model.errors import ErrorCode
from ottla.storage.log.outcomes import Appended
from ottla.wire.apis.delete_records import DeleteRecordsPartitionResult, DeleteRecordsResponse
from ottla.wire.apis.produce import PartitionProduceResponse, ProduceResponse

_TIMED_OUT = int(ErrorCode.REQUEST_TIMED_OUT)
_NOT_LEADER = int(ErrorCode.NOT_LEADER_OR_FOLLOWER)


class _Awaited(Protocol):
    """One partition's part of a parked request; what becomes of it is told in its row of the answer."""

    is_over: bool

    @property
    def result(self) -> PartitionProduceResponse | DeleteRecordsPartitionResult: ...


A = TypeVar("A", bound=_Awaited)


class _Parked(Generic[A]):
    """A request that is answered when the last of its partitions is settled, or when its time is up."""

    __slots__ = ("_awaited", "_waiting", "deadline_ms", "request", "response")

    def __init__(
        self, waiting: Waiting, request: Request, response: ProduceResponse | DeleteRecordsResponse
    ) -> None:
        self._waiting = waiting
        self.request = request
        self.response = response
        self.deadline_ms = 0
        self._awaited: dict[A, None] = {}

    @property
    def connection(self) -> Connection:
        return self.request.connection

    @property
    def is_waiting(self) -> bool:
        return bool(self._awaited)

    def settled(self, awaited: A) -> None:
        """One partition is done; the last one answers the request."""
        self._awaited.pop(awaited, None)
        if not self._awaited:
            self._waiting.deadlines.remove(self)
            self.request.reply(self.response)

    def expire(self) -> None:
        """The request timed out; its records may still be committed later."""
        for awaited in self._awaited:
            awaited.is_over = True
            awaited.result.error_code = _TIMED_OUT
        self._awaited = {}
        self.request.reply(self.response)

    def abandon(self) -> None:
        for awaited in self._awaited:
            awaited.is_over = True
        self._awaited = {}


class ParkedProduce(_Parked["ProducedBatch"]):
    """A produce request whose records are written, but not yet committed everywhere."""

    __slots__ = ()

    def wait_for(self, partition: Partition, end_offset: int, result: PartitionProduceResponse) -> None:
        """Answer only once this partition's high watermark has reached the records' end."""
        awaited = ProducedBatch(self, end_offset, result)
        self._awaited[awaited] = None
        partition.await_commit(awaited)


class ProducedBatch:
    """One partition's part of a parked produce request."""

    __slots__ = ("_parked", "end_offset", "is_over", "result")

    def __init__(self, parked: ParkedProduce, end_offset: int, result: PartitionProduceResponse) -> None:
        self._parked = parked
        self.end_offset = end_offset
        self.result = result
        self.is_over = False

    def settled(self, error_code: int) -> None:
        """The records are committed (0), or will not be by this leader."""
        if not self.is_over:
            self.is_over = True
            self.result.error_code = error_code
            self._parked.settled(self)


class ParkedBatch:
    """A produce request of one batch that is written, but not yet committed everywhere."""

    __slots__ = ("_answer", "_waiting", "_written", "deadline_ms", "end_offset", "is_over", "request")

    def __init__(
        self,
        waiting: Waiting,
        request: Request,
        written: Appended,
        answer: Callable[[int, int, Appended], bytes],
    ) -> None:
        """``answer`` encodes it, given the request's number, an error or 0, and where the batch is."""
        self._waiting = waiting
        self._answer = answer
        self._written = written
        self.request = request
        self.end_offset = written.last_offset + 1
        self.deadline_ms = 0
        self.is_over = False

    @property
    def connection(self) -> Connection:
        return self.request.connection

    def settled(self, error_code: int) -> None:
        """The records are committed (0), or will not be by this leader."""
        if not self.is_over:
            self._waiting.deadlines.remove(self)
            self._reply(error_code)

    def expire(self) -> None:
        """The request timed out; its records may still be committed later."""
        self._reply(_TIMED_OUT)

    def abandon(self) -> None:
        self.is_over = True

    def _reply(self, error_code: int) -> None:
        self.is_over = True
        request = self.request
        request.reply_encoded([self._answer(request.correlation_id, error_code, self._written)])


class ParkedDelete(_Parked["DeletedRecords"]):
    """A DeleteRecords request that waits until all live replicas have moved their log start.

    One that is too slow is told how far all have come.
    """

    __slots__ = ()

    def wait_for(self, partition: Partition, offset: int, result: DeleteRecordsPartitionResult) -> None:
        """Answer only once every live replica of this partition begins at the offset or behind it."""
        awaited = DeletedRecords(self, partition, offset, result)
        if not awaited.is_reached():
            self._awaited[awaited] = None
            if partition.awaited_deletes is None:
                partition.awaited_deletes = []
            partition.awaited_deletes.append(awaited)


class DeletedRecords:
    """One partition's part of a parked DeleteRecords request."""

    __slots__ = ("_offset", "_parked", "_partition", "is_over", "result")

    def __init__(
        self,
        parked: ParkedDelete,
        partition: Partition,
        offset: int,
        result: DeleteRecordsPartitionResult,
    ) -> None:
        self._parked = parked
        self._partition = partition
        self._offset = offset
        self.result = result
        self.is_over = False

    def is_reached(self) -> bool:
        """Whether all live replicas have come so far; notes the low watermark, or NOT_LEADER."""
        partition = self._partition
        leader = partition.leader
        if leader is None:
            self.result.error_code = _NOT_LEADER
            self.result.low_watermark = -1
            return True
        low_watermark = leader.low_watermark(partition.log.log_start_offset, partition.context.live)
        self.result.low_watermark = low_watermark
        return low_watermark >= self._offset

    def look_again(self) -> bool:
        """True when there is nothing more to wait for."""
        if not self.is_over and self.is_reached():
            self.is_over = True
            self._parked.settled(self)
        return self.is_over
