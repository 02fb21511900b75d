"""A coordinator on this broker: its shards follow the leadership of an internal topic's partitions."""

import logging
from collections.abc import Callable
from functools import partial
from typing import Any, Generic

from ottla.broker.coordinating.internal_topic import InternalTopic, S
from ottla.broker.coordinating.loading import NEXT_TURN, Loading
from ottla.broker.coordinating.markers import MarkerSender
from ottla.broker.metadata.image import MetadataChange, MetadataImage
from ottla.broker.replicas.hosted import Partitions
from ottla.broker.runtime.call_each import call_each
from ottla.broker.runtime.runtime import Runtime
from ottla.broker.runtime.tasks import Steps, Task
from ottla.broker.runtime.timers import Timer
from ottla.coordinator.shard import (
    Answer,
    Append,
    Effect,
    Moment,
    PreparedHandedOver,
    SendMarkers,
    Shard,
    TransactionFenced,
)
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.records.builder import build_batch
from ottla.records.record import Record
from ottla.wire.primitives import fits_string

log = logging.getLogger(__name__)

STALLED_MS = 1_000
"""A deadline found this late was missed because the process stood still, not because a client was silent."""

GRACE_MS = 500
"""After a standstill requests that wait at the sockets are handled for this long before deadlines count."""

IDS_TOLD = 10
HANDED_OVER = (
    "prepared transactions change hands partition=%d count=%d ids=%s: the next coordinator must have"
    " transaction.two.phase.commit.enable=true; an Apache broker of 3.9 does not keep them"
)


class LedShard(Generic[S]):
    """A shard whose partition is led here: it loads, then it serves."""

    __slots__ = ("early_markers", "epoch", "grace_until_ms", "load", "shard", "timer")

    def __init__(self, shard: S, epoch: int) -> None:
        self.shard = shard
        self.epoch = epoch
        self.load: Task[bool] | None = None
        """The load under way; None once the shard serves."""
        self.timer: Timer | None = None
        """For the shard's next deadline."""
        self.grace_until_ms = 0
        self.early_markers: list[tuple[int, bool]] = []
        """Producer id and outcome of transactions that ended during the load."""


class CoordinatorHost(Generic[S]):
    """Loads and unloads shards, hands requests to them, and performs their effects."""

    def __init__(
        self,
        topic: InternalTopic[S],
        runtime: Runtime,
        partitions: Partitions,
        metadata: MetadataImage,
        markers: MarkerSender,
        tell: Callable[[TransactionFenced], None],
    ) -> None:
        """``tell`` writes down what people may ask about later."""
        self._tell = tell
        self._topic = topic
        self._runtime = runtime
        self._clock = runtime.clock
        self._partitions = partitions
        self._metadata = metadata
        self._markers = markers
        self._led: dict[int, LedShard[S]] = {}
        self._requests: dict[int, Callable[[Any], None]] = {}
        self._last_token = 0

    # -- which shard -------------------------------------------------------------------------

    def partition_of(self, key: str) -> int:
        """The partition that a group or transactional id belongs to."""
        topic = self._metadata.topics.get(self._topic.name)
        return self._topic.partition_of(key, len(topic.partitions) if topic is not None else 0)

    def find(self, key: str) -> tuple[S, int] | ErrorCode:
        """The shard of a group or transactional id and its partition, or why this broker cannot answer.

        A broker whose session ended may have lost its partitions without being told yet. One that leads a
        partition before it has heard of the topic does not know how many there are, and which has the key.
        """
        if not fits_string(key):
            return self._topic.invalid_key
        if self._runtime.identity.is_untold or self._topic.name not in self._metadata.topics:
            return ErrorCode.NOT_COORDINATOR
        number = self.partition_of(key)
        led = self._led.get(number)
        if led is None:
            return ErrorCode.NOT_COORDINATOR
        if led.load is not None:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return led.shard, number

    def serving(self) -> list[S]:
        """The shards that are loaded."""
        return [led.shard for led in self._led.values() if led.load is None]

    @property
    def is_loading(self) -> bool:
        return any(led.load is not None for led in self._led.values())

    # -- leadership --------------------------------------------------------------------------

    def on_leader(self, partition: TopicPartition, leader_epoch: int) -> None:
        """This broker leads a partition now: load its shard.

        If it led in the epoch before, nobody else has written since, and the shard goes on.
        """
        if partition.topic != self._topic.name:
            return
        known = self._led.get(partition.partition)
        if known is not None and known.epoch >= leader_epoch - 1:
            known.epoch = max(known.epoch, leader_epoch)
            return
        self.on_not_leader(partition)
        led = self._led[partition.partition] = LedShard(self._topic.new_shard(), leader_epoch)
        loading = Loading(self._partitions, partition, led.shard)
        led.load = self._runtime.tasks.spawn(
            loading.run(), self._runtime.own, partial(self._load_ended, partition.partition, led)
        )

    def _load_ended(self, number: int, led: LedShard[S], is_loaded: bool) -> None:
        if is_loaded:
            self._loaded(number, led)

    def _loaded(self, number: int, led: LedShard[S]) -> None:
        led.load = None
        shard = led.shard
        for producer_id, is_commit in led.early_markers:
            shard.end_transaction(producer_id, is_commit=is_commit)
        partition = TopicPartition(self._topic.name, number)
        log.info(
            "shard loaded partition=%s entities=%d unreadable=%d",
            partition,
            shard.entity_count,
            shard.unreadable,
        )
        self.perform(number, shard.loaded(self.now()))

    def on_not_leader(self, partition: TopicPartition) -> None:
        """Another broker leads the partition: unload its shard and answer everyone who waits."""
        if partition.topic != self._topic.name:
            return
        led = self._led.pop(partition.partition, None)
        if led is None:
            return
        if led.load is not None:
            led.load.cancel()
        if led.timer is not None:
            led.timer.cancel()
        self._perform_effects(partition.partition, None, led.shard.unload(self.now()))
        self._runtime.own.spawn(_free(led.shard))
        log.info("shard unloaded partition=%s epoch=%d", partition, led.epoch)

    def on_marker(self, partition: TopicPartition, producer_id: int, *, is_commit: bool) -> None:
        """The marker of a transaction is committed.

        A load under way may have read it or not. If it has, the marker is applied twice, which does nothing:
        no other transaction of this producer can have begun here meanwhile.
        """
        led = self._led.get(partition.partition) if partition.topic == self._topic.name else None
        if led is None:
            return
        if led.load is None:
            led.shard.end_transaction(producer_id, is_commit=is_commit)
        else:
            led.early_markers.append((producer_id, is_commit))

    def on_metadata_changed(self, change: MetadataChange) -> None:
        """Tell the shards which partitions were deleted."""
        if not change.deleted:
            return
        for number, led in list(self._led.items()):
            if led.load is None:
                self.perform(number, led.shard.partitions_deleted(change.deleted, self.now()))

    def stop(self) -> None:
        """The broker shuts down."""
        for number in list(self._led):
            self.on_not_leader(TopicPartition(self._topic.name, number))

    # -- requests and effects ----------------------------------------------------------------

    def now(self) -> Moment:
        return Moment(self._clock.monotonic_ms(), self._clock.wall_ms())

    def token(self, reply: Callable[[Any], None]) -> int:
        """A token for one request; the shard's answer goes to ``reply``."""
        self._last_token += 1
        self._requests[self._last_token] = reply
        return self._last_token

    def perform(self, number: int, effects: list[Effect]) -> None:
        """Perform a shard's effects, then set the timer for its next deadline."""
        led = self._led.get(number)
        self._perform_effects(number, led, effects)
        if led is not None:
            self._set_timer(number, led)

    def _perform_effects(self, number: int, led: LedShard[S] | None, effects: list[Effect]) -> None:
        call_each(partial(self._perform_effect, number, led, effect) for effect in effects)

    def _perform_effect(self, number: int, led: LedShard[S] | None, effect: Effect) -> None:
        match effect:
            case Answer():
                reply = self._requests.pop(effect.token, None)
                if reply is not None:
                    reply(effect.response)
            case Append() if led is not None:
                self._append(number, led, effect)
            case SendMarkers() if led is not None:
                self._send_markers(number, led, effect)
            case TransactionFenced():
                self._tell(effect)
            case PreparedHandedOver():
                ids = effect.transactional_ids
                log.warning(HANDED_OVER, number, len(ids), ids[:IDS_TOLD])
            case Append() | SendMarkers():
                pass

    def _append(self, number: int, led: LedShard[S], append: Append) -> None:
        def settled(error: ErrorCode) -> None:
            if self._led.get(number) is led:
                self.perform(number, led.shard.appended(append.ticket, error, self.now()))

        self._partitions.append_internal(
            TopicPartition(self._topic.name, number),
            _batch_of(append, self._clock.wall_ms()),
            self._topic.append_acks if append.acks is None else append.acks,
            self._topic.append_timeout_ms if append.timeout_ms is None else append.timeout_ms,
            settled,
            verification=append.verification,
        )

    def _send_markers(self, number: int, led: LedShard[S], effect: SendMarkers) -> None:
        def marked(partitions: list[TopicPartition]) -> None:
            shard = led.shard
            self.perform(number, shard.marked(effect.transactional_id, partitions, self.now()))

        self._markers.send(effect, led.epoch, marked, is_current=lambda: self._led.get(number) is led)

    # -- deadlines ---------------------------------------------------------------------------

    def _set_timer(self, number: int, led: LedShard[S]) -> None:
        deadline_ms = led.shard.next_deadline_ms()
        if deadline_ms is None or led.load is not None or self._led.get(number) is not led:
            return
        if led.timer is not None and led.timer.is_pending:
            if led.timer.deadline_ms <= deadline_ms:
                return
            led.timer.cancel()
        delay_ms = max(0, max(deadline_ms, led.grace_until_ms) - self._clock.monotonic_ms())
        led.timer = self._runtime.timers.after(delay_ms, partial(self._tick, number, led))

    def _tick(self, number: int, led: LedShard[S]) -> None:
        if self._led.get(number) is not led:
            return
        if self._stood_still(led):
            self._set_timer(number, led)
        else:
            self.perform(number, led.shard.tick(self.now()))

    def _stood_still(self, led: LedShard[S]) -> bool:
        """After a standstill of this process heartbeats wait at its sockets: handle them before deadlines."""
        now_ms, deadline_ms = self._clock.monotonic_ms(), led.shard.next_deadline_ms()
        is_late = deadline_ms is not None and now_ms - deadline_ms > STALLED_MS
        if not is_late or now_ms < led.grace_until_ms + STALLED_MS:
            return False
        led.grace_until_ms = now_ms + GRACE_MS
        return True


def _free(shard: Shard[Any]) -> Steps[None]:
    """Free a shard a portion at a time: a million offsets at once would hold up everyone else."""
    while shard.free_some():
        yield NEXT_TURN


def _batch_of(append: Append, wall_ms: int) -> bytearray:
    records = [Record(key, value, timestamp=wall_ms) for key, value in append.records]
    if append.producer is None:
        return build_batch(records, base_sequence=append.base_sequence)
    return build_batch(
        records,
        base_sequence=append.base_sequence,
        producer_id=append.producer.producer_id,
        producer_epoch=append.producer.epoch,
        is_transactional=True,
    )
