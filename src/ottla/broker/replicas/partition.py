"""One hosted partition: its log joined with the leader's or the follower's decisions about it."""

import logging
from collections import deque
from collections.abc import Iterable
from typing import Protocol, assert_never

from ottla.broker.replicas.context import PartitionContext
from ottla.broker.replicas.producer_order import UNSETTLED_MS
from ottla.broker.replicas.readers import FetchEntry
from ottla.model.errors import ErrorCode, LogDirectoryFailed
from ottla.model.ids import (
    NO_EPOCH,
    NO_LEADER,
    ZERO_TOPIC_ID,
    BrokerId,
    LeaderEpoch,
    Offset,
    TopicId,
    TopicPartition,
)
from ottla.model.partition_state import ReplicaAssignment
from ottla.records.batch import LOG_OVERHEAD, BatchHeader, Buffer
from ottla.records.validate import Origin, Refused
from ottla.replication.effects import AssignEpoch, HighWatermarkAdvanced, LeaderEffect, ProposeIsr
from ottla.replication.events import Elected, IsrChangeAnswered
from ottla.replication.fetch_checks import check_leader_epoch
from ottla.replication.follower import PartitionFollower
from ottla.replication.leader import PartitionLeader
from ottla.storage.log.log import Log
from ottla.storage.log.outcomes import Appended, Duplicate
from ottla.storage.segment.log_slice import LogSlice
from ottla.wire.apis.leader_and_isr import LeaderAndIsrPartitionState

log = logging.getLogger(__name__)

WARM_TAIL_BYTES = 256 * 1024 * 1024
"""How much of the newest segment is believed to be in memory still."""

_NONE = int(ErrorCode.NONE)
_NOT_LEADER = int(ErrorCode.NOT_LEADER_OR_FOLLOWER)
_STORAGE_ERROR = int(ErrorCode.KAFKA_STORAGE_ERROR)


class AwaitedAppend(Protocol):
    """Someone who waits until a partition has committed records."""

    end_offset: int
    is_over: bool

    def settled(self, error_code: int) -> None:
        """The records are committed (0), or will not be by this leader."""


class AwaitedDelete(Protocol):
    """Someone who waits until all live replicas have moved their log start."""

    def look_again(self) -> bool:
        """True when there is nothing more to wait for."""


class Partition:
    """Leader, follower, or neither yet; ``leader`` and ``follower`` are never both there."""

    __slots__ = (
        "assignment",
        "awaited_appends",
        "awaited_deletes",
        "context",
        "elected_ms",
        "follower",
        "leader",
        "leader_epoch",
        "leader_id",
        "log",
        "name",
        "partition_epoch",
        "warm",
        "watchers",
    )

    def __init__(self, context: PartitionContext, name: TopicPartition, partition_log: Log) -> None:
        self.context = context
        self.name = name
        self.log = partition_log
        self.leader_id: BrokerId = NO_LEADER
        self.leader_epoch: LeaderEpoch = NO_EPOCH
        self.elected_ms = -UNSETTLED_MS
        """When this broker last took over from a leader, who may have lost or refused batches."""
        self.partition_epoch = 0
        self.assignment = ReplicaAssignment(())
        self.leader: PartitionLeader | None = None
        self.follower: PartitionFollower | None = None
        self.watchers: dict[FetchEntry, None] = {}
        """The readers that have this partition on their list."""
        self.warm: tuple[int, int, int] | None = None
        """Segment, first and last position that were brought into memory for readers far behind."""
        self.awaited_appends: deque[AwaitedAppend] | None = None
        self.awaited_deletes: list[AwaitedDelete] | None = None

    @property
    def topic_id(self) -> TopicId:
        return self.log.topic_id or ZERO_TOPIC_ID

    # --- roles --------------------------------------------------------------------------------------

    def become_leader(self, state: LeaderAndIsrPartitionState) -> bool:
        """Lead in a new epoch; ignore a partition state that is older than the own one."""
        if state.partition_epoch < self.partition_epoch:
            return False
        runtime = self.context.runtime
        self.follower = None
        self._take_assignment(state)
        if self.leader is None:
            if state.leader_epoch > 0:
                self.elected_ms = self.context.clock.monotonic_ms()
            self.leader = PartitionLeader(
                runtime.identity.broker_id,
                min_insync_replicas=self.log.config.min_insync_replicas,
                lag_time_max_ms=runtime.config.replication.replica_lag_time_max_ms,
            )
        self.leader_id = runtime.identity.broker_id
        self.leader_epoch = LeaderEpoch(state.leader_epoch)
        self.partition_epoch = state.partition_epoch
        election = Elected(
            leader_epoch=self.leader_epoch,
            partition_epoch=state.partition_epoch,
            isr=tuple(map(BrokerId, state.isr)),
            replicas=self.assignment.replicas,
            adding=self.assignment.adding,
            removing=self.assignment.removing,
            end_offset=Offset(self.log.end_offset),
            high_watermark=Offset(self.log.high_watermark),
        )
        self.perform(self.leader.elected(election, self.context.clock.monotonic_ms(), self.context.live))
        self.tell_all_watchers()
        return True

    def become_follower(self, state: LeaderAndIsrPartitionState) -> bool:
        """Follow another broker in a new epoch; whoever waited for this one as leader hears so."""
        if state.partition_epoch < self.partition_epoch:
            return False
        self._take_assignment(state)
        self.leader = None
        self.leader_id = BrokerId(state.leader)
        self.leader_epoch = LeaderEpoch(state.leader_epoch)
        self.partition_epoch = state.partition_epoch
        self.follower = PartitionFollower(self.leader_id, self.leader_epoch, self.topic_id, self.log)
        self._lost_leadership()
        return True

    def stop(self) -> None:
        """Neither lead nor follow any more."""
        self.leader = None
        self.follower = None
        self._lost_leadership()
        self.forget_watchers()

    def forget_watchers(self) -> None:
        """Readers must look this partition up again: it may be gone, or another of the same name."""
        watchers, self.watchers = self.watchers, {}
        for entry in watchers:
            entry.partition = None
            entry.reader.dirty[entry] = None

    def assign_topic_id(self, topic_id: TopicId) -> None:
        """The topic's id came after the partition."""
        self.log.assign_topic_id(topic_id)
        if self.follower is not None:
            self.follower.topic_id = topic_id

    def take_log(self, moved: Log) -> None:
        """The same records, in another directory."""
        self.log = moved
        self.warm = None
        if self.follower is not None:
            self.follower.log = moved
        self.tell_all_watchers()

    def _take_assignment(self, state: LeaderAndIsrPartitionState) -> None:
        self.assignment = ReplicaAssignment(
            tuple(map(BrokerId, state.replicas)),
            tuple(map(BrokerId, state.adding_replicas)),
            tuple(map(BrokerId, state.removing_replicas)),
        )

    def _lost_leadership(self) -> None:
        if self.awaited_appends or self.awaited_deletes:
            self.context.waiting.note_committed(self)
        self.tell_all_watchers()

    # --- the leader's log -----------------------------------------------------------------------------

    def append(
        self,
        view: Buffer,
        header: BatchHeader,
        acks: int,
        *,
        origin: Origin = Origin.CLIENT,
        verification: int | None = None,
        must_be_verified: bool = False,
    ) -> Appended | Duplicate | Refused:
        """Append one batch as leader; the caller waits for the high watermark if it must."""
        leader = self.leader
        if leader is None:
            return Refused(_NOT_LEADER)
        if acks == -1 and (code := leader.may_append(acks)) is not ErrorCode.NONE:
            return Refused(int(code), while_appending=True)
        clock, order = self.context.clock, self.context.producer_order
        try:
            if (
                origin == Origin.CLIENT
                and header[12] > 0  # the first batches of a producer, and those of none, are never too early
                and (too_early := order.comes_too_early(self, header)) is not None
            ):
                return too_early
            outcome = self.log.append_as_leader(
                view,
                header,
                leader_epoch=self.leader_epoch,
                now_ms=clock.wall_ms(),
                origin=origin,
                verification=verification,
                must_be_verified=must_be_verified,
            )
        except LogDirectoryFailed as failed:
            self.context.directory_failed(failed)
            return Refused(_STORAGE_ERROR)
        if type(outcome) is Refused:
            return order.refused_by_log(self, header, outcome)
        if type(outcome) is Appended:
            meters = self.context.meters
            meters.bytes_in += header[2] + LOG_OVERHEAD
            meters.records_in += header[7] + 1
            self._grew(leader, clock.monotonic_ms())
        if header[10] >= 0:
            order.note_written(self.name, header)
        return outcome

    def _grew(self, leader: PartitionLeader, now_ms: int) -> None:
        watchers = self.watchers
        for entry in watchers:
            reader = entry.reader
            if reader.replica_id >= 0:
                if entry not in reader.dirty:
                    leader.follower_was_caught_up(BrokerId(reader.replica_id), reader.last_fetch_ms)
                    reader.dirty[entry] = None
                if reader.parked is not None:
                    self.context.waiting.note_readable(reader)
        effects = leader.appended(self.log.end_offset, now_ms, self.context.live)
        if effects:
            self.perform(effects)

    def perform(self, effects: Iterable[LeaderEffect]) -> None:
        """Carry out what the leader decided."""
        for effect in effects:
            match effect:
                case HighWatermarkAdvanced():
                    self.log.high_watermark = effect.to
                    self.committed()
                case ProposeIsr():
                    self.context.isr_proposals.propose(self, effect)
                case AssignEpoch():
                    self.log.epochs.assign(effect.leader_epoch, effect.start_offset)
                case _:
                    assert_never(effect)

    def committed(self) -> None:
        """The high watermark moved: producers may be answered, consumers may read on."""
        waiting = self.context.waiting
        if self.awaited_appends:
            waiting.note_committed(self)
        for entry in self.watchers:
            reader = entry.reader
            reader.dirty[entry] = None
            if reader.replica_id < 0 and reader.parked is not None:
                waiting.note_readable(reader)

    def await_commit(self, awaited: AwaitedAppend) -> None:
        """Tell this producer when its records are committed. Producers stand in the order of their offsets:
        those grow, and only a batch that was written before and is sent again stands farther in front."""
        waiting = self.awaited_appends
        if waiting is None:
            waiting = self.awaited_appends = deque()
        if not waiting or waiting[-1].end_offset <= awaited.end_offset:
            waiting.append(awaited)
            return
        place = len(waiting) - 1
        while place and waiting[place - 1].end_offset > awaited.end_offset:
            place -= 1
        waiting.insert(place, awaited)

    def settle(self) -> None:
        """Answer those whose records are committed by now, or whose leader is gone."""
        leader = self.leader
        awaited = self.awaited_appends
        if awaited is not None:
            while awaited:
                first = awaited[0]
                code = (
                    ErrorCode.NOT_LEADER_OR_FOLLOWER
                    if leader is None
                    else leader.append_outcome(first.end_offset)
                )
                if code is None and not first.is_over:
                    break
                awaited.popleft()
                if code is None:
                    continue
                try:
                    first.settled(int(code))
                except BaseException:
                    self.context.waiting.note_committed(self)  # those behind it hear in the next turn
                    raise
            if not awaited:
                self.awaited_appends = None
        if self.awaited_deletes:
            self.awaited_deletes = [each for each in self.awaited_deletes if not each.look_again()] or None

    # --- the ISR --------------------------------------------------------------------------------------

    def follower_fetched(self, entry: FetchEntry, now_ms: int) -> None:
        """Note how far a follower has fetched; its position was checked before."""
        leader = self.leader
        assert leader is not None, "only a leader hears its followers"
        reader = entry.reader
        follower = BrokerId(reader.replica_id)
        effects = leader.follower_fetched(
            follower,
            entry.fetch_offset,
            entry.log_start_offset,
            now_ms,
            self.context.live,
            reader.replica_epoch,
        )
        if effects:
            self.perform(effects)
        if self.awaited_deletes:
            self.context.waiting.note_committed(self)

    def check_lag(self, now_ms: int) -> None:
        """Propose an ISR without followers that fell behind, and limit the wait for those about to join."""
        if self.leader is not None:
            self.perform(self.leader.reconsider(now_ms, self.context.live))
            self.perform(self.leader.check_lag(now_ms))

    def brokers_changed(self, now_ms: int) -> None:
        """Brokers died or came back: requests that wait for replicas need not wait for dead ones."""
        if self.awaited_deletes:
            self.context.waiting.note_committed(self)
        if self.awaited_appends and self.leader is not None:
            self.perform(self.leader.reconsider(now_ms, self.context.live))

    def isr_change_answered(self, answer: IsrChangeAnswered) -> None:
        """The controller answered a proposed ISR; a smaller one lets followers be looked at again."""
        leader = self.leader
        if leader is None:
            return
        before = leader.isr.committed
        self.perform(leader.isr_change_answered(answer, self.context.clock.monotonic_ms(), self.context.live))
        if leader.isr.committed != before:
            self.partition_epoch = leader.partition_epoch
            self.context.meters.isr_changed(len(before), len(leader.isr.committed))
            log.debug(
                "isr partition=%s epoch=%d isr=%s was=%s version=%d",
                self.name,
                self.leader_epoch,
                ",".join(map(str, leader.isr.committed)),
                ",".join(map(str, before)),
                leader.partition_epoch,
            )
            if self.awaited_appends:
                self.context.waiting.note_committed(self)
        self.partition_epoch = max(self.partition_epoch, leader.partition_epoch)
        for entry in self.watchers:
            if entry.reader.replica_id >= 0:
                entry.reader.dirty[entry] = None

    def has_in_sync(self, broker: int) -> bool:
        """Is that follower in the ISR, or about to be?"""
        return self.leader is not None and broker in self.leader.isr.maximal

    # --- questions --------------------------------------------------------------------------------------

    def check_epoch(self, requested: int) -> int:
        """Refuse whoever believes in another leader epoch."""
        return check_leader_epoch(requested, self.leader_epoch)

    def check_leadership(self, requested_epoch: int) -> int:
        """Refuse another leader epoch, then everyone if this broker does not lead."""
        return self.check_epoch(requested_epoch) or (_NONE if self.leader is not None else _NOT_LEADER)

    def is_cold(self, records: LogSlice) -> bool:
        """Whether reading these might wait for the disk; the newest part of a log is in memory."""
        active = self.log.active_segment
        if (
            records.segment_base_offset == active.base_offset
            and active.size - records.position <= WARM_TAIL_BYTES
        ):
            return False
        warm = self.warm
        return (
            warm is None
            or warm[0] != records.segment_base_offset
            or not warm[1] <= records.position <= records.position + records.size <= warm[2]
        )

    # --- readers ----------------------------------------------------------------------------------------

    def tell_all_watchers(self) -> None:
        """Something changed that every reader must hear of: role, epoch, or a cut of the log."""
        waiting = self.context.waiting
        for entry in self.watchers:
            entry.reader.dirty[entry] = None
            if entry.reader.parked is not None:
                waiting.note_readable(entry.reader)

    def log_start_moved(self) -> None:
        """Readers hear of it with their next answer; nobody is woken."""
        for entry in self.watchers:
            entry.reader.dirty[entry] = None
        if self.awaited_deletes:
            self.context.waiting.note_committed(self)
