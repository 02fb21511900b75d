"""One partition of ``__consumer_offsets``: the groups that live in it, and all that may happen to them."""

from collections.abc import Callable, Iterable, Sequence

from ottla.config.group import GroupConfig
from ottla.coordinator.group import answers
from ottla.coordinator.group.committed import by_stored_form
from ottla.coordinator.group.effects import Effect, Moment
from ottla.coordinator.group.group import Group
from ottla.coordinator.group.members import NOBODY
from ottla.coordinator.group.offsets import Commit, Offsets, commit_answer
from ottla.coordinator.group.queries import fetch_offsets
from ottla.coordinator.group.rebalance import Join, Rebalance, who_is_it
from ottla.coordinator.group.shard_state import ShardState, Turn
from ottla.coordinator.group.states import GroupState
from ottla.coordinator.group.timers import Due, TimerKind
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.wire.apis.heartbeat import HeartbeatResponse
from ottla.wire.apis.leave_group import LeaveGroupResponse, MemberIdentity, MemberResponse
from ottla.wire.apis.offset_fetch import OffsetFetchResponseGroup
from ottla.wire.apis.sync_group import SyncGroupRequest


class GroupShard:
    """Synchronous: a request and the time go in, answers and records to write come out.

    What is in the log changes only when the host says that a write was committed (``appended``);
    what is not in the log (who is joining, who was heard of) lives and dies with this object.
    """

    def __init__(self, config: GroupConfig, new_uuid: Callable[[], str]) -> None:
        self.state = ShardState(config, new_uuid)
        self._rebalance = Rebalance(self.state)
        self._offsets = Offsets(self.state, self._rebalance)

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
            self._forget_if_never_used(group)
        return turn.effects

    def _group_to_join(self, request: Join) -> Group | None:
        group = self.groups.get(request.group_id)
        if group is None and request.member_id == NOBODY:
            group = self.groups[request.group_id] = Group(request.group_id)
        return group

    def _forget_if_never_used(self, group: Group) -> None:
        """A join that was refused must not leave a group behind."""
        untouched = group.state is GroupState.EMPTY and group.generation == 0 and not group.members
        if untouched and not group.offsets and not group.pending_members and not group.pending_commits:
            self.groups.pop(group.group_id, None)

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
        """Several may leave at once, each with its own outcome; by instance id an operator may remove one."""
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
        if group is None and request.generation >= 0:
            turn.answer(token, commit_answer(request, ErrorCode.ILLEGAL_GENERATION))
            return turn.effects
        if group is None:
            group = self.groups[request.group_id] = Group(request.group_id)
        self._offsets.commit(turn, group, token, request)
        self._forget_if_never_used(group)
        return turn.effects

    def delete_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition], now: Moment
    ) -> tuple[ErrorCode, dict[TopicPartition, ErrorCode], list[Effect]]:
        """Drop single offsets of a group; not those of topics it is subscribed to."""
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
        self._offsets.forget(turn, group, dropped, f"offsets of group {group_id} deleted")
        return ErrorCode.NONE, codes, turn.effects

    def delete_group(self, group_id: str, now: Moment) -> tuple[ErrorCode, list[Effect]]:
        """Delete a group that has no members, offsets and all, in one batch."""
        turn = Turn(now)
        group = self.groups.get(group_id)
        if group is None or group.state is GroupState.DEAD:
            return ErrorCode.GROUP_ID_NOT_FOUND, []
        if group.state is not GroupState.EMPTY:
            return ErrorCode.NON_EMPTY_GROUP, []
        group.move_to(GroupState.DEAD, now.wall_ms)
        known = dict.fromkeys([*group.offsets, *group.pending_commits])
        self._offsets.forget(turn, group, known, f"group {group_id} deleted")
        return ErrorCode.NONE, turn.effects

    def end_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        """The marker of a transaction is in the log."""
        self._offsets.end_transaction(producer_id, is_commit=is_commit)

    def fetch(
        self, group_id: str, partitions: list[TopicPartition] | None, *, require_stable: bool
    ) -> OffsetFetchResponseGroup:
        """A group's offsets; a client that wants stable ones waits for commits and transactions to end."""
        group = self.groups.get(group_id)
        asked = partitions if partitions is not None else list(group.offsets) if group is not None else []
        unstable = self._offsets.unstable(group_id, asked) if require_stable else frozenset()
        return fetch_offsets(group, group_id, partitions, unstable)

    def drop_partitions(self, partitions: Iterable[TopicPartition], now: Moment) -> list[Effect]:
        """The topic is gone: so are the offsets that were committed for it."""
        turn = Turn(now)
        gone = by_stored_form(partitions)
        for group in list(self.groups.values()):
            affected = group.offsets.held_of(gone)
            if group.pending_commits:
                under_way = [tp for tp in gone.values() if tp in group.pending_commits]
                affected = list(dict.fromkeys([*affected, *under_way]))
            if affected:
                self._offsets.forget(turn, group, affected, "the topic was deleted")
        return turn.effects

    def expire_offsets(self, now: Moment, group_ids: Iterable[str] | None = None) -> list[Effect]:
        """Drop what these groups, or all, kept long enough."""
        turn = Turn(now)
        for group_id in list(self.groups) if group_ids is None else group_ids:
            group = self.groups.get(group_id)
            if group is not None:
                self._offsets.expire(turn, group)
        return turn.effects

    # -- writes, time, and the end -----------------------------------------------------------

    def appended(self, ticket: int, error: ErrorCode, now: Moment) -> list[Effect]:
        """A write is committed, or has failed; a late word of an unloaded shard is ignored."""
        turn = Turn(now)
        settle = self.state.writes.pop(ticket, None)
        if settle is not None:
            settle(turn, error)
        return turn.effects

    def next_deadline_ms(self) -> int | None:
        return self.state.timers.next_deadline_ms()

    def tick(self, now: Moment) -> list[Effect]:
        turn = Turn(now)
        while (due := self.state.timers.pop_due(now.monotonic_ms)) is not None:
            group = self.groups.get(due.group_id)
            if group is not None:
                self._on_due(turn, group, due)
        return turn.effects

    def _on_due(self, turn: Turn, group: Group, due: Due) -> None:
        match due.kind:
            case TimerKind.MEMBER:
                self._on_member_due(turn, group, due)
            case TimerKind.PENDING_MEMBER:
                if group.pending_members.get(due.member_id) == due.deadline_ms:
                    self._rebalance.remove_pending(turn, group, due.member_id)
                    self._forget_if_never_used(group)
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

    def loaded(self, now: Moment) -> list[Effect]:
        """The log was read to its end: members have their session time-out to be heard of.

        A group that is larger than it may be by now gathers anew, and takes in as many as it may.
        """
        turn = Turn(now)
        for group in self.groups.values():
            if len(group.members) > self.state.config.group_max_size:
                self._rebalance.gather(turn, group)
            for member in group.members.values():
                self._rebalance.expect_heartbeat(turn, group, member)
        return turn.effects

    def unload(self, now: Moment) -> list[Effect]:
        """Another broker coordinates these groups now: tell all who wait."""
        turn = Turn(now)
        for group in self.groups.values():
            for member in group.members.values():
                if member.awaiting_join is not None:
                    turn.answer(
                        member.awaiting_join,
                        answers.join_refused(member.member_id, ErrorCode.NOT_COORDINATOR),
                    )
                if member.awaiting_sync is not None:
                    turn.answer(member.awaiting_sync, answers.sync_refused(ErrorCode.NOT_COORDINATOR))
                member.awaiting_join = member.awaiting_sync = None
        settles, self.state.writes = list(self.state.writes.values()), {}
        for settle in settles:
            settle(turn, ErrorCode.NOT_COORDINATOR)
        self.state.groups = {}
        self.state.timers.clear()
        return turn.effects
