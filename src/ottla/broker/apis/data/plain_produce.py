"""The plain Produce: one batch for one partition, from a client that has sent its like before.

The requests of a producer to one partition begin with the same bytes, but for their number, and their answers
differ in number, offset and times. So what the first one says is decoded once, by the codec, and its answer
is encoded once: from then on the batch is all that is looked at. Its checks, its append and whatever is out
of the ordinary are those of every other Produce.
"""

from struct import Struct

from ottla.broker.apis.data import produce
from ottla.broker.clients.commit_waits import ParkedBatch
from ottla.broker.clients.connections import Connection
from ottla.broker.clients.request import Request
from ottla.broker.node import Node
from ottla.broker.replicas.partition import Partition
from ottla.broker.runtime.state import BrokerState
from ottla.model.errors import ErrorCode, MalformedRequest
from ottla.records.batch import HEADER_SIZE, TRANSACTIONAL_BIT
from ottla.records.validate import Refused, parse_produced
from ottla.storage.log.outcomes import Appended
from ottla.wire.apis.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from ottla.wire.headers import frame_request, frame_response
from ottla.wire.keys import ApiKey
from ottla.wire.primitives import INT32, read_uvarint

LOG_STARTS_SINCE = 5
"""Older answers lack the log's start; hardly anyone sends such requests any more."""
_ACKS = (1, -1)
_KEY = int(ApiKey.PRODUCE)
_NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER
_START = Struct(">ii")
"""API and version, and the request's number; in an answer its size and that number."""
_ROW = Struct(">hqqq")
"""Error, offset, time and log start."""
_NO_TAGS = b"\0\0\0"
"""What follows the records in flexible versions, if nothing does."""
_LENGTH_AND_TAGS = 4
"""How many bytes follow the beginning of a request without records, in every version."""
_STAMPED = 0x0102_0304_0506_0708
"""Stands for the offset in the pattern of an answer: no topic's name holds such bytes."""


def learn(node: Node, request: Request, body: ProduceRequest) -> None:
    """Serve those that begin like this one in the short way from now on, if it is a plain one."""
    if len(body.topic_data) != 1 or len(body.topic_data[0].partition_data) != 1:
        return
    topic, index = body.topic_data[0].name, body.topic_data[0].partition_data[0].index
    if (
        request.api_version < LOG_STARTS_SINCE
        or body.transactional_id is not None
        or body.acks not in _ACKS
        or topic in produce.CLOSED_TOPICS
        or node.partitions.find(topic, index) is None
    ):
        return
    plain = PlainProduce(node, request, body.acks, body.timeout_ms, topic, index)
    request.connection.learn_plain(plain.beginning(), plain)


class PlainProduce:
    """What a producer's requests to one partition have in common."""

    __slots__ = (
        "_acks",
        "_answer_size",
        "_at",
        "_client_id",
        "_head",
        "_index",
        "_is_flexible",
        "_node",
        "_pack",
        "_start",
        "_tail",
        "_timeout_ms",
        "_topic",
        "_version",
    )

    def __init__(
        self, node: Node, request: Request, acks: int, timeout_ms: int, topic: str, index: int
    ) -> None:
        self._node = node
        self._version = request.api_version
        self._start = _KEY << 16 | request.api_version
        self._client_id = request.client_id
        self._acks, self._timeout_ms = acks, timeout_ms
        self._topic, self._index = topic, index
        self._is_flexible = ProduceRequest.spec.is_flexible(request.api_version)
        self._at = _START.size + len(self.beginning())
        row = PartitionProduceResponse(index, 0, _STAMPED)
        pattern = b"".join(
            frame_response(ProduceResponse([TopicProduceResponse(topic, [row])]), self._version, 0)
        )
        error_at = pattern.index(_STAMPED.to_bytes(8, "big")) - 2
        self._head, self._tail = pattern[_START.size : error_at], pattern[error_at + _ROW.size :]
        self._answer_size = len(pattern) - 4
        self._pack = Struct(f"{_START.format}{len(self._head)}s{_ROW.format[1:]}{len(self._tail)}s").pack

    def beginning(self) -> bytes:
        """The bytes from behind the number to the length of the records, as our codec writes them."""
        topics = [TopicProduceData(self._topic, [PartitionProduceData(self._index, b"")])]
        body = ProduceRequest(None, self._acks, self._timeout_ms, topics)
        frame = b"".join(frame_request(body, self._version, 0, self._client_id))
        return frame[4 + _START.size : -_LENGTH_AND_TAGS]

    def serve(self, connection: Connection, frame: memoryview) -> bool:
        """Whether the request was served; if not, nothing has been done."""
        start, correlation_id = _START.unpack_from(frame)
        node, owed = self._node, connection.owed
        if (
            start != self._start
            or connection.held
            or (owed and owed[-1].api_key != _KEY)
            or node.state is BrokerState.STOPPING
        ):
            return False
        records = self._records(frame)
        if records is None:
            return False
        header = parse_produced(records, self._version)
        if isinstance(header, Refused) or header[6] & TRANSACTIONAL_BIT:
            return False
        topic, index, acks = self._topic, self._index, self._acks
        known = node.metadata.topics.get(topic)
        partition = node.partitions.find(topic, index)
        if partition is None or known is None or index not in known.partitions:
            return False
        request: Request | None = None
        if acks == -1 or owed or connection.meter is not None:
            request = self._request(connection, correlation_id, len(frame))
        outcome = partition.append(records, header, acks)
        if type(outcome) is Appended:
            if request is None:
                connection.write_bare([self._answer(correlation_id, 0, outcome)])
            elif acks == 1:
                request.reply_encoded([self._answer(correlation_id, 0, outcome)])
            else:
                self._answer_committed(request, partition, outcome)
            return True
        if request is None:
            request = self._request(connection, correlation_id, len(frame))
        batch = produce.Batch(topic, index, records, header)
        response = produce.answer_one(node, request, acks, self._timeout_ms, batch, partition, outcome)
        if response is not None:
            request.reply(response)
        return True

    def _records(self, frame: memoryview) -> memoryview | None:
        """The bytes between the beginning and the end, if their length says that they are all there is."""
        at, stop = self._at, len(frame)
        if stop - at < HEADER_SIZE:
            return None
        if not self._is_flexible:
            (size,) = INT32.unpack_from(frame, at)
            return frame[at + 4 :] if size == stop - at - 4 else None
        stop -= len(_NO_TAGS)
        try:
            size, at = read_uvarint(frame, at)
        except MalformedRequest:
            return None
        return frame[at:stop] if size - 1 == stop - at and frame[stop:] == _NO_TAGS else None

    def _request(self, connection: Connection, correlation_id: int, size: int) -> Request:
        """It takes its place among those that wait for their answers."""
        request = Request(connection, _KEY, self._version, correlation_id, self._client_id, size)
        connection.accept(request)
        return request

    def _answer(self, correlation_id: int, error: int, written: Appended) -> bytes:
        """Size, number, and the row of the one partition in its pattern."""
        return self._pack(
            self._answer_size,
            correlation_id,
            self._head,
            error,
            written.base_offset,
            written.log_append_time_ms,
            written.log_start_offset,
            self._tail,
        )

    def _answer_committed(self, request: Request, partition: Partition, written: Appended) -> None:
        """Now, or once all in-sync replicas have the batch."""
        leader = partition.leader
        code = _NOT_LEADER if leader is None else leader.append_outcome(written.last_offset + 1)
        if code is not None:
            request.reply_encoded([self._answer(request.correlation_id, int(code), written)])
            return
        waiting = self._node.waiting
        parked = ParkedBatch(waiting, request, written, self._answer)
        partition.await_commit(parked)
        waiting.deadlines.add(parked, max(0, self._timeout_ms))
