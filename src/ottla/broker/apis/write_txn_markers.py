"""WriteTxnMarkers 0-1: a transaction coordinator has the outcome written where the transaction wrote."""

from typing import TYPE_CHECKING

from ottla.broker.request import Request
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

if TYPE_CHECKING:
    from ottla.broker.node import Node

TIMEOUT_MS = 30_000


def handle(node: "Node", request: Request, body: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse | None:
    """Append every marker, acks=all; answer once each of them is committed or refused."""
    writing = _Writing(request)
    for marker in body.markers:
        result = WritableTxnMarkerResult(producer_id=marker.producer_id, topics=[])
        writing.response.markers.append(result)
        for topic in marker.topics:
            of_topic = WritableTxnMarkerTopicResult(name=topic.name, partitions=[])
            result.topics.append(of_topic)
            for index in topic.partition_indexes:
                of_partition = WritableTxnMarkerPartitionResult(partition_index=index)
                of_topic.partitions.append(of_partition)
                writing.begin()
                _append(node, TopicPartition(topic.name, index), marker, of_partition, writing)
    writing.end()
    return None


class _Writing:
    """Counts the markers that are not yet settled; the last one answers."""

    __slots__ = ("_open", "request", "response")

    def __init__(self, request: Request) -> None:
        self.request = request
        self.response = WriteTxnMarkersResponse(markers=[])
        self._open = 1

    def begin(self) -> None:
        self._open += 1

    def end(self) -> None:
        self._open -= 1
        if not self._open:
            self.request.reply(self.response)


def _append(
    node: "Node",
    name: TopicPartition,
    marker: WritableTxnMarker,
    result: WritableTxnMarkerPartitionResult,
    writing: _Writing,
) -> None:
    def settled(error: ErrorCode) -> None:
        result.error_code = int(error)
        if error is ErrorCode.NONE:
            is_commit = marker.transaction_result
            node.coordinator.on_marker(name, marker.producer_id, is_commit=is_commit)
        writing.end()

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
