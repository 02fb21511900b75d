"""The group coordinator on this broker: its shards follow the leadership of ``__consumer_offsets``."""

import logging
import uuid
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from ottla.broker.callbacks import call_each
from ottla.broker.coordinator_loading import Loading
from ottla.broker.coordinator_sweeps import Sweep, let_go
from ottla.broker.metadata_image import MetadataChange
from ottla.broker.request import Request
from ottla.broker.timers import Timer
from ottla.coordinator.group.core import GroupShard
from ottla.coordinator.group.effects import Answer, Append, Effect, Moment
from ottla.coordinator.group.loader import Loader
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.model.spread import coordinating_partition
from ottla.records.builder import build_batch
from ottla.records.record import Record
from ottla.wire.primitives import fits_string

if TYPE_CHECKING:
    from ottla.broker.node import Node

log = logging.getLogger(__name__)

OFFSETS_TOPIC = "__consumer_offsets"
STOOD_STILL_MS = 1_000
"""A deadline that is noticed so late was missed by this process, not by a member."""

HEARING_MS = 500
"""So long members are heard before anybody's time is up."""


class Shard:
    """One offsets partition led here: loading first, then serving."""

    __slots__ = ("core", "early_markers", "epoch", "hears_until_ms", "loading", "timer")

    def __init__(self, core: GroupShard, epoch: int) -> None:
        self.core = core
        self.epoch = epoch
        self.loading: Loading | None = None
        self.timer: Timer | None = None
        self.hears_until_ms = 0
        """Nobody's time is up before that."""
        self.early_markers: list[tuple[int, bool]] = []
        """Producer and outcome of the transactions that ended while the groups were loading."""


class CoordinatorHost:
    """Turns requests into calls of the shards, and the shards' effects into appends and replies."""

    def __init__(self, node: "Node") -> None:
        self._node = node
        self._shards: dict[int, Shard] = {}
        self._requests: dict[int, Callable[[Any], None]] = {}
        self._last_token = 0

    # -- who coordinates what ----------------------------------------------------------------

    def partition_of(self, group_id: str) -> int:
        """The partition of ``__consumer_offsets`` that a group lives in."""
        topic = self._node.metadata.topics.get(OFFSETS_TOPIC)
        count = len(topic.partitions) if topic is not None else 0
        planned = self._node.config.groups.offsets_topic_num_partitions
        return coordinating_partition(group_id, count or planned)

    def find(self, group_id: str) -> tuple[GroupShard, int] | ErrorCode:
        """The shard of a group and its partition, or why this broker cannot answer for it.

        One whose session ended lost its partitions with it, though nobody may have told it yet who has them
        now: what it knows of them is old.
        """
        if not fits_string(group_id):
            return ErrorCode.INVALID_GROUP_ID
        if self._node.is_untold:
            return ErrorCode.NOT_COORDINATOR
        partition = self.partition_of(group_id)
        shard = self._shards.get(partition)
        if shard is None:
            return ErrorCode.NOT_COORDINATOR
        if shard.loading is not None:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return shard.core, partition

    def serving(self) -> Iterable[GroupShard]:
        """The shards that are loaded."""
        return [shard.core for shard in self._shards.values() if shard.loading is None]

    @property
    def is_loading(self) -> bool:
        return any(shard.loading is not None for shard in self._shards.values())

    # -- leadership --------------------------------------------------------------------------

    def start(self) -> None:
        self._schedule_expiry()

    def on_leader(self, partition: TopicPartition, leader_epoch: int) -> None:
        """This broker leads an offsets partition now: read its groups from the log.

        Whoever led it in the epoch before is the only one who wrote it since, and has its groups already.
        """
        if partition.topic != OFFSETS_TOPIC:
            return
        known = self._shards.get(partition.partition)
        if known is not None and known.epoch >= leader_epoch - 1:
            known.epoch = max(known.epoch, leader_epoch)
            return
        self.on_not_leader(partition)
        core = GroupShard(self._node.config.groups, self._new_uuid)
        shard = self._shards[partition.partition] = Shard(core, leader_epoch)
        shard.loading = Loading(self._node, partition, lambda loader: self._loaded(partition, shard, loader))
        shard.loading.begin()

    def _new_uuid(self) -> str:
        return str(uuid.UUID(int=self._node.random.getrandbits(128), version=4))

    def _loaded(self, partition: TopicPartition, shard: Shard, loader: Loader) -> None:
        if self._shards.get(partition.partition) is not shard:
            return
        shard.loading = None
        shard.core.groups.update(loader.groups())
        shard.core.state.transactions = loader.transactions
        for producer_id, is_commit in shard.early_markers:
            shard.core.end_transaction(producer_id, is_commit=is_commit)
        log.info(
            "groups loaded partition=%s groups=%d unreadable=%d",
            partition,
            len(shard.core.groups),
            loader.unreadable,
        )
        self.perform(partition.partition, shard.core.loaded(self.now()))

    def on_not_leader(self, partition: TopicPartition) -> None:
        """Another broker leads the partition: everyone who waits here is sent to look for it."""
        if partition.topic != OFFSETS_TOPIC:
            return
        shard = self._shards.pop(partition.partition, None)
        if shard is None:
            return
        if shard.loading is not None:
            shard.loading.cancel()
            shard.loading = None
        if shard.timer is not None:
            shard.timer.cancel()
        groups = shard.core.groups
        self._perform_effects(partition.partition, None, shard.core.unload(self.now()))
        let_go(self._node, groups)
        log.info("groups unloaded partition=%s epoch=%d", partition, shard.epoch)

    def on_marker(self, partition: TopicPartition, producer_id: int, *, is_commit: bool) -> None:
        """The marker of a transaction is committed.

        A load under way may be past the marker's place in the log, or still before it: then the transaction
        ends twice, which changes nothing, as no other of this producer can have begun here meanwhile.
        """
        shard = self._shards.get(partition.partition) if partition.topic == OFFSETS_TOPIC else None
        if shard is None:
            return
        if shard.loading is None:
            shard.core.end_transaction(producer_id, is_commit=is_commit)
        else:
            shard.early_markers.append((producer_id, is_commit))

    def on_metadata_changed(self, change: MetadataChange) -> None:
        """Topics that are gone take their committed offsets with them."""
        if not change.deleted:
            return
        for number, shard in list(self._shards.items()):
            if shard.loading is None:
                self.perform(number, shard.core.drop_partitions(change.deleted, self.now()))

    def stop(self) -> None:
        """The broker leaves."""
        for number in list(self._shards):
            self.on_not_leader(TopicPartition(OFFSETS_TOPIC, number))

    # -- requests and effects ----------------------------------------------------------------

    def now(self) -> Moment:
        clock = self._node.clock
        return Moment(clock.monotonic_ms(), clock.wall_ms())

    def token(self, reply: Callable[[Any], None]) -> int:
        """A number for one question; the shard's answer to it goes to ``reply``."""
        self._last_token += 1
        self._requests[self._last_token] = reply
        return self._last_token

    def ask(self, request: Request) -> int:
        """A number for one client's request."""
        return self.token(request.reply)

    def perform(self, number: int, effects: list[Effect]) -> None:
        """Carry out what a shard asked for, then wait for its next deadline."""
        shard = self._shards.get(number)
        self._perform_effects(number, shard, effects)
        if shard is not None:
            self._set_timer(number, shard)

    def _perform_effects(self, number: int, shard: Shard | None, effects: list[Effect]) -> None:
        call_each(partial(self._perform_effect, number, shard, effect) for effect in effects)

    def _perform_effect(self, number: int, shard: Shard | None, effect: Effect) -> None:
        match effect:
            case Answer():
                reply = self._requests.pop(effect.token, None)
                if reply is not None:
                    reply(effect.response)
            case Append() if shard is not None:
                self._append(number, shard, effect)
            case Append():
                pass

    def _append(self, number: int, shard: Shard, write: Append) -> None:
        partition = TopicPartition(OFFSETS_TOPIC, number)
        groups = self._node.config.groups

        def settled(error: ErrorCode) -> None:
            if self._shards.get(number) is shard:
                self.perform(number, shard.core.appended(write.ticket, error, self.now()))

        self._node.partitions.append_internal(
            partition,
            _batch_of(write, self._node.clock.wall_ms()),
            groups.offsets_commit_required_acks if write.acks is None else write.acks,
            groups.offsets_commit_timeout_ms,
            settled,
        )

    # -- time --------------------------------------------------------------------------------

    def _set_timer(self, number: int, shard: Shard) -> None:
        deadline_ms = shard.core.next_deadline_ms()
        if deadline_ms is None or self._shards.get(number) is not shard:
            return
        if shard.timer is not None and shard.timer.is_pending:
            if shard.timer.deadline_ms <= deadline_ms:
                return
            shard.timer.cancel()
        delay_ms = max(0, max(deadline_ms, shard.hears_until_ms) - self._node.clock.monotonic_ms())
        shard.timer = self._node.timers.after(delay_ms, lambda: self._tick(number, shard))

    def _tick(self, number: int, shard: Shard) -> None:
        if self._shards.get(number) is not shard:
            return
        if self._stood_still(shard):
            self._set_timer(number, shard)
        else:
            self.perform(number, shard.core.tick(self.now()))

    def _stood_still(self, shard: Shard) -> bool:
        """After a pause of this process the members' heartbeats wait at its sockets: they are heard first."""
        now_ms, deadline_ms = self._node.clock.monotonic_ms(), shard.core.next_deadline_ms()
        is_late = deadline_ms is not None and now_ms - deadline_ms > STOOD_STILL_MS
        if not is_late or now_ms < shard.hears_until_ms + STOOD_STILL_MS:
            return False
        shard.hears_until_ms = now_ms + HEARING_MS
        return True

    def _schedule_expiry(self) -> None:
        interval_ms = self._node.config.groups.offsets_retention_check_interval_ms
        self._node.timers.after(interval_ms, self._expire)

    def _expire(self) -> None:
        self._schedule_expiry()
        for number, shard in list(self._shards.items()):
            if shard.loading is None:
                self._expire_shard(number, shard)

    def _expire_shard(self, number: int, shard: Shard) -> None:
        def visit(group_ids: list[str]) -> bool:
            if self._shards.get(number) is not shard:
                return False
            self.perform(number, shard.core.expire_offsets(self.now(), group_ids))
            return True

        Sweep(self._node, shard.core, visit).go_on()


def _batch_of(write: Append, wall_ms: int) -> bytearray:
    records = [Record(key, value, timestamp=wall_ms) for key, value in write.records]
    return build_batch(records, base_sequence=write.base_sequence)
