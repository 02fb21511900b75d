"""One partition of ``__consumer_offsets``: its groups and all requests to them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import assert_never

from ottla.config.group import GroupConfig
from ottla.coordinator.group import answers
from ottla.coordinator.group.group import Group
from ottla.coordinator.group.members import NOBODY
from ottla.coordinator.group.metadata import restore
from ottla.coordinator.group.offsets import Offsets
from ottla.coordinator.group.queries import fetch_offsets
from ottla.coordinator.group.rebalance import Rebalance, who_is_it
from ottla.coordinator.group.requests import Commit, Join
from ottla.coordinator.group.shard_state import (
    CommitOffsets,
    DropOffsets,
    GroupWrite,
    ReplaceStaticMember,
    ShardState,
    StoreAssignment,
    StoreEmptyGroup,
    TimerKind,
)
from ottla.coordinator.group.states import GroupState
from ottla.coordinator.group.stored.committed import by_stored_form
from ottla.coordinator.group.stored.records import group_tombstone
from ottla.coordinator.shard import Effect, KeyAndValue, Moment, Shard, Turn
from ottla.coordinator.timers import Due
from ottla.model.errors import ErrorCode, MalformedRequest
from ottla.model.ids import TopicPartition
from ottla.wire.apis.heartbeat import HeartbeatResponse
from ottla.wire.apis.leave_group import LeaveGroupResponse, MemberIdentity, MemberResponse
from ottla.wire.apis.offset_fetch import OffsetFetchResponseGroup
from ottla.wire.apis.sync_group import SyncGroupRequest

GROUPS_PER_PORTION = 200
"""How many groups are restored or freed before others get their turn."""

OFFSETS_PER_PORTION = 2_000
"""How many offsets the expiry visits before others get their turn."""

PORTION_PAUSE_MS = 1


class GroupShard(Shard[GroupWrite]):
    """The groups of one partition. What is not in the log (who is joining, who sent heartbeats) ends here."""

    def __init__(self, config: GroupConfig, new_uuid: Callable[[], str]) -> None:
        super().__init__()
        self.state = ShardState(config, new_uuid, self.writes)
        self._rebalance = Rebalance(self.state)
        self._offsets = Offsets(self.state, self._rebalance)
        self._to_expire: list[str] = []

    @property
    def groups(self) -> dict[str, Group]:
        return self.state.groups

    # -- the life of a member ----------------------------------------------------------------

    def join(self, token: int, request: Join, now: Moment) -> list[Effect]:
        turn = Turn(now)
        config = self.state.config
        lowest, highest = config.group_min_session_timeout_ms, config.group_max_session_timeout_ms
        if not request.group_id:
            turn.answer(token, answers.join_refused(request.member_id, ErrorCode.INVALID_GROUP_ID))
        elif not lowest <= request.session_timeout_ms <= highest:
            turn.answer(token, answers.join_refused(request.member_id, ErrorCode.INVALID_SESSION_TIMEOUT))
        elif (group := self._group_to_join(request)) is None:
            turn.answer(token, answers.join_refused(request.member_id, ErrorCode.UNKNOWN_MEMBER_ID))
        else:
            self._rebalance.join(turn, group, token, request)
            self._remove_if_never_used(group)
        return turn.effects

    def _group_to_join(self, request: Join) -> Group | None:
        group = self.groups.get(request.group_id)
        if group is None and request.member_id == NOBODY:
            group = self.state.stored.group(request.group_id)
        return group

    def _remove_if_never_used(self, group: Group) -> None:
        """A refused request must not leave a group behind."""
        untouched = group.state is GroupState.EMPTY and group.generation == 0 and not group.members
        is_free = not group.offsets and not group.pending_members and not self.writes.targets(group.group_id)
        if untouched and is_free and not self._offsets.waiting_commits(group.group_id):
            self.state.stored.remove(group.group_id)

    def sync(self, token: int, request: SyncGroupRequest, now: Moment) -> list[Effect]:
        turn = Turn(now)
        group = self.groups.get(request.group_id)
        refusal = self._may_sync(group, request)
        if group is None or refusal is not ErrorCode.NONE:
            turn.answer(token, answers.sync_refused(refusal))
            return turn.effects
        shares = {row.member_id: bytes(row.assignment) for row in request.assignments}
        self._rebalance.sync(turn, group, token, request.member_id, shares)
        return turn.effects

    @staticmethod
    def _may_sync(group: Group | None, request: SyncGroupRequest) -> ErrorCode:
        if not request.group_id:
            return ErrorCode.INVALID_GROUP_ID
        if group is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if group.state is GroupState.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        refusal = who_is_it(group, request.member_id, request.group_instance_id)
        if refusal is not ErrorCode.NONE:
            return refusal
        if request.generation_id != group.generation:
            return ErrorCode.ILLEGAL_GENERATION
        said_type, said_name = request.protocol_type, request.protocol_name
        if said_type is not None and said_type != group.protocol_type:
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if said_name is not None and said_name != group.protocol_name:
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        return ErrorCode.NONE

    def heartbeat(
        self, token: int, group_id: str, member_id: str, instance_id: str | None, generation: int, now: Moment
    ) -> list[Effect]:
        turn = Turn(now)
        error = self._heartbeat(turn, group_id, member_id, instance_id, generation)
        turn.answer(token, HeartbeatResponse(error_code=error))
        return turn.effects

    def _heartbeat(
        self, turn: Turn, group_id: str, member_id: str, instance_id: str | None, generation: int
    ) -> ErrorCode:
        if not group_id:
            return ErrorCode.INVALID_GROUP_ID
        group = self.groups.get(group_id)
        if group is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if group.state is GroupState.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        refusal = who_is_it(group, member_id, instance_id)
        if refusal is not ErrorCode.NONE:
            return refusal
        if generation != group.generation:
            return ErrorCode.ILLEGAL_GENERATION
        self._rebalance.expect_heartbeat(turn, group, group.members[member_id])
        if group.state is GroupState.PREPARING_REBALANCE:
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    def leave(
        self, token: int, group_id: str, leaving: Sequence[MemberIdentity], now: Moment
    ) -> list[Effect]:
        """Remove members, each with its own outcome. A static one may be named by its instance id alone."""
        turn = Turn(now)
        group = self.groups.get(group_id)
        if not group_id:
            turn.answer(token, LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID))
        elif group is not None and group.state is GroupState.DEAD:
            turn.answer(token, LeaveGroupResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE))
        else:
            rows = [
                MemberResponse(
                    member_id=who.member_id,
                    group_instance_id=who.group_instance_id,
                    error_code=self._leave_one(turn, group, who),
                )
                for who in leaving
            ]
            turn.answer(token, LeaveGroupResponse(error_code=ErrorCode.NONE, members=rows))
        return turn.effects

    def _leave_one(self, turn: Turn, group: Group | None, who: MemberIdentity) -> ErrorCode:
        if group is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        member_id, instance_id = who.member_id, who.group_instance_id
        if member_id == NOBODY and instance_id is not None:
            member_id = group.static_members.get(instance_id, NOBODY)
        elif member_id in group.pending_members:
            self._rebalance.remove_pending(turn, group, member_id)
            return ErrorCode.NONE
        refusal = who_is_it(group, member_id, instance_id)
        if refusal is ErrorCode.NONE:
            self._rebalance.remove(turn, group, group.members[member_id])
        return refusal

    # -- offsets -----------------------------------------------------------------------------

    def commit(self, token: int, request: Commit, now: Moment) -> list[Effect]:
        turn = Turn(now)
        group = self.groups.get(request.group_id)
        if group is None and request.generation >= 0 and request.producer is None:
            turn.answer(token, answers.commit_answer(request, ErrorCode.ILLEGAL_GENERATION))
            return turn.effects
        if group is None:
            group = self.state.stored.group(request.group_id)
        self._offsets.commit(turn, group, token, request)
        self._remove_if_never_used(group)
        return turn.effects

    def delete_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition], now: Moment
    ) -> tuple[ErrorCode, dict[TopicPartition, ErrorCode], list[Effect]]:
        """Drop offsets of a group, except those of topics that it is subscribed to."""
        group = self.groups.get(group_id)
        if not group_id:
            return ErrorCode.INVALID_GROUP_ID, {}, []
        if group is None or group.state is GroupState.DEAD:
            return ErrorCode.GROUP_ID_NOT_FOUND, {}, []
        has_members = group.state is not GroupState.EMPTY
        if has_members and not group.is_consumer_group:
            return ErrorCode.NON_EMPTY_GROUP, {}, []
        codes = {
            tp: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
            if has_members and group.may_read(tp.topic)
            else ErrorCode.NONE
            for tp in partitions
        }
        turn = Turn(now)
        dropped = [tp for tp, code in codes.items() if code is ErrorCode.NONE]
        self._offsets.drop(turn, group, dropped, f"offsets of group {group_id} deleted")
        return ErrorCode.NONE, codes, turn.effects

    def delete_group(self, group_id: str, now: Moment) -> tuple[ErrorCode, list[Effect]]:
        """Delete a group without members and all its offsets in one batch."""
        turn = Turn(now)
        group = self.groups.get(group_id)
        if group is None or group.state is GroupState.DEAD:
            return ErrorCode.GROUP_ID_NOT_FOUND, []
        if group.state is not GroupState.EMPTY:
            return ErrorCode.NON_EMPTY_GROUP, []
        group.move_to(GroupState.DEAD, now.wall_ms)
        under_way = self._offsets.pending_commits(group_id) | self._offsets.waiting_commits(group_id)
        known = dict.fromkeys([*group.offsets, *sorted(under_way)])
        self._offsets.drop(turn, group, known, f"group {group_id} deleted")
        return ErrorCode.NONE, turn.effects

    def fetch(
        self, group_id: str, partitions: list[TopicPartition] | None, *, require_stable: bool
    ) -> OffsetFetchResponseGroup:
        """A group's offsets; with ``require_stable`` those about to change are refused."""
        group = self.groups.get(group_id)
        asked = partitions if partitions is not None else list(group.offsets) if group is not None else []
        unstable = self._offsets.unstable(group_id, asked) if require_stable else frozenset()
        return fetch_offsets(group, group_id, partitions, unstable)

    def partitions_deleted(self, partitions: Iterable[TopicPartition], now: Moment) -> list[Effect]:
        """Drop the offsets of partitions that were deleted."""
        turn = Turn(now)
        gone = by_stored_form(partitions)
        waiting = self._offsets.waiting_groups()
        for group in list(self.groups.values()):
            affected = group.offsets.held_of(gone)
            under_way: set[TopicPartition] = set()
            if group.group_id in waiting:
                under_way |= self._offsets.waiting_commits(group.group_id)
            if self.writes.targets(group.group_id):
                under_way |= self._offsets.pending_commits(group.group_id)
            if under_way:
                affected = list(dict.fromkeys([*affected, *(tp for tp in gone.values() if tp in under_way)]))
            if affected:
                self._offsets.drop(turn, group, affected, "the topic was deleted")
        return turn.effects

    def expire_offsets(self, now: Moment, group_ids: Iterable[str] | None = None) -> list[Effect]:
        """Drop the expired offsets of these groups, or of all."""
        turn = Turn(now)
        for group_id in list(self.groups) if group_ids is None else group_ids:
            group = self.groups.get(group_id)
            if group is not None:
                self._offsets.expire(turn, group)
        return turn.effects

    # -- stored state ------------------------------------------------------------------------

    @property
    def entity_count(self) -> int:
        return len(self.groups)

    @property
    def unreadable(self) -> int:
        return self.state.stored.unreadable

    def apply(self, records: Iterable[KeyAndValue], producer_id: int | None = None) -> None:
        if producer_id is None:
            self.state.stored.apply(records)
        else:
            self.state.stored.apply_in_transaction(producer_id, records)

    def end_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        self.state.stored.end_transaction(producer_id, is_commit=is_commit)

    def restore(self) -> Iterator[None]:
        """Make the live groups; a group of which nothing is stored is removed."""
        for number, group in enumerate(list(self.groups.values()), start=1):
            if group.stored.metadata is not None:
                self._restore(group)
            if group.stored.metadata is None and not group.offsets:
                self.state.stored.remove(group.group_id)
            if number % GROUPS_PER_PORTION == 0:
                yield

    def _restore(self, group: Group) -> None:
        """Metadata that cannot be read counts as deleted."""
        try:
            restore(group)
        except MalformedRequest:
            self.state.stored.unreadable += 1
            self.apply([group_tombstone(group.group_id)])

    def settled(self, turn: Turn, then: GroupWrite, error: ErrorCode) -> None:
        match then:
            case CommitOffsets():
                self._offsets.committed(turn, then, error)
            case DropOffsets():
                self._offsets.dropped(then, error)
            case StoreAssignment():
                self._rebalance.assignment_stored(turn, then, error)
            case ReplaceStaticMember():
                self._rebalance.static_member_stored(turn, then, error)
            case StoreEmptyGroup():
                pass
            case _:
                assert_never(then)

    # -- time --------------------------------------------------------------------------------

    def next_deadline_ms(self) -> int | None:
        return self.state.timers.next_deadline_ms()

    def tick(self, now: Moment) -> list[Effect]:
        turn = Turn(now)
        while (due := self.state.timers.pop_due(now.monotonic_ms)) is not None:
            group = self.groups.get(due.entity)
            if due.kind == TimerKind.EXPIRY:
                self._expire_portion(turn)
            elif group is not None:
                self._on_due(turn, group, due)
        return turn.effects

    def _on_due(self, turn: Turn, group: Group, due: Due) -> None:
        match due.kind:
            case TimerKind.MEMBER:
                self._on_member_due(turn, group, due)
            case TimerKind.PENDING_MEMBER:
                if group.pending_members.get(due.member_id) == due.deadline_ms:
                    self._rebalance.remove_pending(turn, group, due.member_id)
                    self._remove_if_never_used(group)
            case TimerKind.JOIN:
                if group.join_deadline_ms == due.deadline_ms:
                    self._rebalance.on_join_deadline(turn, group)
            case TimerKind.SYNC:
                if group.sync_deadline_ms == due.deadline_ms:
                    self._rebalance.on_sync_deadline(turn, group)

    def _on_member_due(self, turn: Turn, group: Group, due: Due) -> None:
        member = group.members.get(due.member_id)
        if member is None or member.timer_at_ms != due.deadline_ms:
            return
        member.timer_at_ms = None
        if member.deadline_ms > due.deadline_ms:
            self._rebalance.expect_by(turn, group, member, member.deadline_ms - turn.now.monotonic_ms)
        elif not member.may_be_silent:
            self._rebalance.remove(turn, group, member)

    def _schedule_expiry(self, now: Moment) -> None:
        """At fixed times, so that a shard that moves often still expires offsets."""
        interval_ms = self.state.config.offsets_retention_check_interval_ms
        self.state.timers.at((now.monotonic_ms // interval_ms + 1) * interval_ms, TimerKind.EXPIRY)

    def _expire_portion(self, turn: Turn) -> None:
        if not self._to_expire:
            self._to_expire = list(self.groups)
        visited = 0
        while self._to_expire and visited < OFFSETS_PER_PORTION:
            group = self.groups.get(self._to_expire.pop())
            if group is not None:
                visited += 1 + len(group.offsets)
                self._offsets.expire(turn, group)
        if self._to_expire:
            self.state.timers.at(turn.now.monotonic_ms + PORTION_PAUSE_MS, TimerKind.EXPIRY)
        else:
            self._schedule_expiry(turn.now)

    # -- begin and end -----------------------------------------------------------------------

    def loaded(self, now: Moment) -> list[Effect]:
        """Members' session time-outs start now. A group larger than ``group.max.size`` rebalances."""
        turn = Turn(now)
        for group in self.groups.values():
            if len(group.members) > self.state.config.group_max_size:
                self._rebalance.gather(turn, group)
            for member in group.members.values():
                self._rebalance.expect_heartbeat(turn, group, member)
        self._schedule_expiry(now)
        return turn.effects

    def unload(self, now: Moment) -> list[Effect]:
        turn = Turn(now)
        for group in self.groups.values():
            for member in group.members.values():
                if member.awaiting_join is not None:
                    refused = answers.join_refused(member.member_id, ErrorCode.NOT_COORDINATOR)
                    turn.answer(member.awaiting_join, refused)
                if member.awaiting_sync is not None:
                    turn.answer(member.awaiting_sync, answers.sync_refused(ErrorCode.NOT_COORDINATOR))
                member.awaiting_join = member.awaiting_sync = None
        self.state.timers.clear()
        return turn.effects + super().unload(now)

    def free_some(self) -> bool:
        for _ in range(min(GROUPS_PER_PORTION, len(self.groups))):
            self.groups.popitem()
        return bool(self.groups)
