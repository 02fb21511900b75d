"""Markers of ended transactions, on their way to the leaders of the partitions they end on.

Every broker has one queue. All that is queued for it in a turn goes as one WriteTxnMarkers, and the next one
goes when that is answered. A marker is sent until its partition has it or is deleted; it waits longer
after each attempt, and not at all when the partition gets another leader.
"""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias

from ottla.broker.metadata.image import MetadataChange, MetadataImage
from ottla.broker.peers.links import LinkLost, PeerLinks
from ottla.broker.runtime.call_each import call_each
from ottla.broker.runtime.timers import Timer, Timers
from ottla.coordinator.shard import SendMarkers
from ottla.model.errors import ErrorCode
from ottla.model.ids import BrokerId, TopicPartition
from ottla.wire.apis.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

log = logging.getLogger(__name__)

LANE = "transaction-markers"
VERSION = 1
RETRY_MS = 50
RETRY_MAX_MS = 1_000

ATTEMPTS_TOLD = 30
"""A marker that nobody takes is told each time that it was tried so often again: every half minute."""

ATTEMPTS_UNKNOWN = 5
"""After so many attempts, about 1.5 s, a partition that nobody told of counts as deleted. A controller that
takes office makes a broker coordinator before it tells it of topics that the broker has not heard of."""

SETTLED: Final = frozenset(
    {ErrorCode.NONE, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, ErrorCode.UNSUPPORTED_VERSION}
)
"""A log of an old format cannot hold a transaction, and needs no marker."""

Then: TypeAlias = Callable[[list[TopicPartition]], None]


@dataclass(frozen=True, slots=True, eq=False)
class Ended:
    """A transaction whose outcome is stored. ``then`` hears of the partitions that have their marker."""

    effect: SendMarkers
    coordinator_epoch: int
    then: Then
    is_current: Callable[[], bool]
    """False once another broker coordinates: then the markers are that one's work."""


@dataclass(slots=True, eq=False)
class Marker:
    """The end of a transaction on one partition."""

    ended: Ended
    partition: TopicPartition
    attempts: int = 0
    why: str = "the partition has no leader"
    """What kept it from being written last."""


class _Queue:
    """What one broker shall write."""

    __slots__ = ("is_sending", "markers", "sent")

    def __init__(self) -> None:
        self.markers: list[Marker] = []
        self.is_sending = False
        self.sent: dict[tuple[int, TopicPartition], Marker] = {}
        """The markers whose answer is under way, by producer and partition."""


class MarkerSender:
    """Sends markers until every one of them is written."""

    def __init__(self, timers: Timers, links: PeerLinks, metadata: MetadataImage) -> None:
        self._timers = timers
        self._links = links
        self._metadata = metadata
        self._queues: dict[BrokerId, _Queue] = {}
        self._waiting: dict[Marker, Timer] = {}
        """Without a leader, or refused a moment ago; with the timer of the next attempt."""

    def __len__(self) -> int:
        """How many markers are queued, sent or waiting."""
        queued = sum(len(queue.markers) + len(queue.sent) for queue in self._queues.values())
        return queued + len(self._waiting)

    @property
    def waiting(self) -> int:
        """How many have no leader, or were refused."""
        return len(self._waiting)

    def send(
        self, effect: SendMarkers, coordinator_epoch: int, then: Then, *, is_current: Callable[[], bool]
    ) -> None:
        """Have the transaction's end written to each of its partitions."""
        ended = Ended(effect, coordinator_epoch, then, is_current)
        self._route([Marker(ended, partition) for partition in sorted(effect.partitions)])

    def on_metadata_changed(self, change: MetadataChange) -> None:
        """Partitions have other leaders, or none: what was on its way to the old ones is sent anew."""
        deleted = frozenset(change.deleted)
        changed = deleted.union(change.updated)
        woken = [each for each in self._waiting if change.brokers_changed or each.partition in changed]
        for marker in woken:
            self._waiting.pop(marker).cancel()
        for broker, queue in self._queues.items():
            moved = [marker for marker in queue.sent.values() if self._leader(marker) != broker]
            for marker in moved:
                del queue.sent[_key(marker)]
            woken += moved
            woken += [marker for marker in queue.markers if self._leader(marker) != broker]
            queue.markers = [marker for marker in queue.markers if self._leader(marker) == broker]
        self._route(woken, deleted)

    # -- where to ----------------------------------------------------------------------------

    def _leader(self, marker: Marker) -> BrokerId | None:
        info = self._metadata.partition(marker.partition)
        return info.leader if info is not None and self._metadata.is_alive(info.leader) else None

    def _route(self, markers: Iterable[Marker], deleted: frozenset[TopicPartition] = frozenset()) -> None:
        """To the queue of the partition's leader. A partition that was deleted needs no marker."""
        needless: list[Marker] = []
        for marker in markers:
            leader = self._leader(marker)
            if not marker.ended.is_current():
                continue
            if leader is not None:
                self._enqueue(leader, marker)
            elif self._is_gone(marker, deleted):
                needless.append(marker)
            else:
                self._wait(marker)
        self._tell(needless)

    def _is_gone(self, marker: Marker, deleted: frozenset[TopicPartition]) -> bool:
        """Whether the controller said that the partition is deleted, or has not told of it for a while."""
        if not self._metadata.has_heard_of_topics or self._metadata.partition(marker.partition) is not None:
            return False
        return marker.partition in deleted or marker.attempts >= ATTEMPTS_UNKNOWN

    def _enqueue(self, broker: BrokerId, marker: Marker) -> None:
        queue = self._queues.setdefault(broker, _Queue())
        queue.markers.append(marker)
        if len(queue.markers) == 1 and not queue.is_sending:
            self._timers.after(0, partial(self._flush, broker, queue))

    def _wait(self, marker: Marker) -> None:
        delay_ms = min(RETRY_MS << min(marker.attempts, 10), RETRY_MAX_MS)
        marker.attempts += 1
        if marker.attempts % ATTEMPTS_TOLD == 0:
            log.warning(
                "a transaction cannot be completed transactional_id=%s partition=%s attempts=%d reason=%s:"
                " bring the partition's replicas back, lower its min.insync.replicas, or delete its topic",
                marker.ended.effect.transactional_id,
                marker.partition,
                marker.attempts,
                marker.why,
            )
        self._waiting[marker] = self._timers.after(delay_ms, partial(self._retry, marker))

    def _retry(self, marker: Marker) -> None:
        del self._waiting[marker]
        self._route([marker])

    # -- one broker --------------------------------------------------------------------------

    def _flush(self, broker: BrokerId, queue: _Queue) -> None:
        if queue.is_sending:
            return
        markers = [marker for marker in queue.markers if marker.ended.is_current()]
        queue.markers = []
        if not markers:
            return
        queue.is_sending = True
        queue.sent = {_key(marker): marker for marker in markers}
        link = self._links.get(broker, LANE)
        link.request(_request(markers), VERSION, partial(self._answered, broker, queue))

    def _answered(self, broker: BrokerId, queue: _Queue, answer: WriteTxnMarkersResponse | LinkLost) -> None:
        sent, queue.sent = queue.sent, {}
        queue.is_sending = False
        codes = {} if isinstance(answer, LinkLost) else _codes(answer)
        written = [marker for key, marker in sent.items() if codes.get(key) in SETTLED]
        refused = [marker for key, marker in sent.items() if codes.get(key) not in SETTLED]
        if any(marker.attempts == 0 for marker in refused):
            why = answer.reason if isinstance(answer, LinkLost) else {code.name for code in codes.values()}
            log.info("markers not written yet broker=%d count=%d reason=%s", broker, len(refused), why)
        for marker in refused:
            code = codes.get(_key(marker), ErrorCode.NETWORK_EXCEPTION)
            marker.why = (
                answer.reason if isinstance(answer, LinkLost) else f"broker {broker} says {code.name}"
            )
            self._wait(marker)
        if queue.markers:
            self._timers.after(0, partial(self._flush, broker, queue))
        self._tell(written)

    @staticmethod
    def _tell(markers: list[Marker]) -> None:
        by_transaction: dict[Ended, list[TopicPartition]] = {}
        for marker in markers:
            if marker.ended.is_current():
                by_transaction.setdefault(marker.ended, []).append(marker.partition)
        call_each(partial(ended.then, partitions) for ended, partitions in by_transaction.items())


def _key(marker: Marker) -> tuple[int, TopicPartition]:
    return marker.ended.effect.producer.producer_id, marker.partition


def _request(markers: list[Marker]) -> WriteTxnMarkersRequest:
    topics: dict[Ended, dict[str, list[int]]] = {}
    for marker in markers:
        topic, partition = marker.partition
        topics.setdefault(marker.ended, {}).setdefault(topic, []).append(partition)
    return WriteTxnMarkersRequest(
        markers=[
            WritableTxnMarker(
                producer_id=ended.effect.producer.producer_id,
                producer_epoch=ended.effect.producer.epoch,
                transaction_result=ended.effect.is_commit,
                coordinator_epoch=ended.coordinator_epoch,
                topics=[
                    WritableTxnMarkerTopic(name=name, partition_indexes=tuple(indexes))
                    for name, indexes in of_transaction.items()
                ],
            )
            for ended, of_transaction in topics.items()
        ]
    )


def _codes(answer: WriteTxnMarkersResponse) -> dict[tuple[int, TopicPartition], ErrorCode]:
    return {
        (marker.producer_id, TopicPartition(topic.name, row.partition_index)): ErrorCode(row.error_code)
        for marker in answer.markers
        for topic in marker.topics
        for row in topic.partitions
    }
