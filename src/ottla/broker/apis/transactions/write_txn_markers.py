"""WriteTxnMarkers 0-1: a transaction coordinator has the outcome written where the transaction wrote."""

from collections.abc import Callable

from ottla.broker.clients.request import Request
from ottla.broker.node import Node
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.records.control import build_end_marker
from ottla.wire.apis.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

TIMEOUT_MS = 5_000
"""How long the in-sync replicas may take. A coordinator gives a request up after 30 s, and with it the
markers that were written: one partition with a silent follower must not hold up the others."""

EXPECTED = frozenset(
    {
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.TRANSACTION_COORDINATOR_FENCED,
    }
)
"""After any other answer an Apache coordinator ends its process."""


def handle(node: Node, request: Request, body: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse | None:
    """Append every marker, acks=all; answer once each of them is committed or refused."""
    writing = _Writing(request)
    for marker in body.markers:
        writing.expect(marker.producer_id)
        for topic in marker.topics:
            for index in topic.partition_indexes:
                name = TopicPartition(topic.name, index)
                _append(node, name, marker, writing.begin(marker.producer_id, name))
    writing.end()
    return None


class _Writing:
    """The codes so far, by producer and partition: a producer has one row, whatever was asked (as in Kafka).

    It counts the markers that are not yet settled; the last one answers.
    """

    __slots__ = ("_codes", "_open", "_request")

    def __init__(self, request: Request) -> None:
        self._request = request
        self._codes: dict[int, dict[TopicPartition, ErrorCode]] = {}
        self._open = 1

    def expect(self, producer_id: int) -> None:
        self._codes.setdefault(producer_id, {})

    def begin(self, producer_id: int, name: TopicPartition) -> Callable[[ErrorCode], None]:
        self._open += 1

        def settled(error: ErrorCode) -> None:
            self._codes[producer_id][name] = error if error in EXPECTED else ErrorCode.KAFKA_STORAGE_ERROR
            self.end()

        return settled

    def end(self) -> None:
        self._open -= 1
        if not self._open:
            self._request.reply(self._response())

    def _response(self) -> WriteTxnMarkersResponse:
        markers = []
        for producer_id, codes in self._codes.items():
            topics: dict[str, list[WritableTxnMarkerPartitionResult]] = {}
            for (topic, index), code in codes.items():
                row = WritableTxnMarkerPartitionResult(partition_index=index, error_code=code)
                topics.setdefault(topic, []).append(row)
            rows = [WritableTxnMarkerTopicResult(name=name, partitions=each) for name, each in topics.items()]
            markers.append(WritableTxnMarkerResult(producer_id=producer_id, topics=rows))
        return WriteTxnMarkersResponse(markers=markers)


def _append(
    node: Node, name: TopicPartition, marker: WritableTxnMarker, then: Callable[[ErrorCode], None]
) -> None:
    def settled(error: ErrorCode) -> None:
        if error is ErrorCode.NONE:
            is_commit = marker.transaction_result
            node.group_coordinator.on_marker(name, marker.producer_id, is_commit=is_commit)
        then(error)

    if node.partitions.find(*name) is None and not node.partitions.is_offline(*name):
        settled(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return
    batch = build_end_marker(
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        is_commit=marker.transaction_result,
        coordinator_epoch=marker.coordinator_epoch,
        timestamp_ms=node.clock.wall_ms(),
    )
    node.partitions.append_internal(name, batch, -1, TIMEOUT_MS, settled)
