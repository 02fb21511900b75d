"""How a group gathers its members, elects its leader and hands out the assignment (the classic protocol)."""

from ottla.coordinator.group import answers
from ottla.coordinator.group.group import Group
from ottla.coordinator.group.members import NOBODY, Member
from ottla.coordinator.group.metadata import group_record, stored_assignments, subscribed_topics
from ottla.coordinator.group.requests import Join
from ottla.coordinator.group.shard_state import (
    GroupWrite,
    ReplaceStaticMember,
    ShardState,
    StoreAssignment,
    StoreEmptyGroup,
    TimerKind,
)
from ottla.coordinator.group.states import GroupState
from ottla.coordinator.shard import Turn
from ottla.model.errors import ErrorCode

NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000
"""How long a new member's JoinGroup may wait: until it is answered the member sends no heartbeats."""

GATHER_AGAIN_MS_MIN = 100
"""The shortest wait for static members that are all away; a rebalance time-out of 0 would loop for ever."""

STORE_ERRORS: dict[ErrorCode, ErrorCode] = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
"""The error code that members get when a write of their group fails."""


class Rebalance:
    """Joining, syncing and leaving, for the groups of one shard."""

    def __init__(self, shard: ShardState) -> None:
        self._shard = shard

    # -- joining -----------------------------------------------------------------------------

    def join(self, turn: Turn, group: Group, token: int, request: Join) -> None:
        """Add a member to the next generation, or refuse it."""
        if not self._has_room(group, request.member_id):
            group.remove(request.member_id)
            turn.answer(token, answers.join_refused(NOBODY, ErrorCode.GROUP_MAX_SIZE_REACHED))
        elif group.state is GroupState.DEAD:
            turn.answer(token, answers.join_refused(request.member_id, ErrorCode.COORDINATOR_NOT_AVAILABLE))
        elif not group.accepts_protocols(request.protocol_type, request.protocols):
            turn.answer(token, answers.join_refused(request.member_id, ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
        elif request.member_id == NOBODY:
            self._join_new(turn, group, token, request)
        else:
            self._join_known(turn, group, token, request)
        self.complete_join_if_all_are_here(turn, group)

    def _has_room(self, group: Group, member_id: str) -> bool:
        limit = self._shard.config.group_max_size
        if group.state is GroupState.PREPARING_REBALANCE:
            member = group.members.get(member_id)
            return (member is not None and member.awaiting_join is not None) or group.joined < limit
        if group.state in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE):
            return member_id in group.members or len(group.members) < limit
        return True

    def _join_new(self, turn: Turn, group: Group, token: int, request: Join) -> None:
        prefix = request.client_id if request.group_instance_id is None else request.group_instance_id
        member_id = f"{prefix}-{self._shard.new_uuid()}"
        if request.group_instance_id is not None:
            known = group.static_members.get(request.group_instance_id)
            if known is not None:
                self._replace_static(turn, group, token, request, known, member_id)
                return
        elif request.must_know_its_id:
            self._remember_pending(turn, group, member_id, request.session_timeout_ms)
            turn.answer(token, answers.join_refused(member_id, ErrorCode.MEMBER_ID_REQUIRED))
            return
        self._add(turn, group, token, request, member_id)

    def _remember_pending(self, turn: Turn, group: Group, member_id: str, session_timeout_ms: int) -> None:
        deadline_ms = turn.now.monotonic_ms + session_timeout_ms
        group.pending_members[member_id] = deadline_ms
        self._shard.timers.at(deadline_ms, TimerKind.PENDING_MEMBER, group.group_id, member_id)

    def _join_known(self, turn: Turn, group: Group, token: int, request: Join) -> None:
        if request.member_id in group.pending_members:
            if request.group_instance_id is not None:
                turn.answer(token, answers.join_refused(request.member_id, ErrorCode.UNKNOWN_MEMBER_ID))
            else:
                self._add(turn, group, token, request, request.member_id)
            return
        refusal = who_is_it(group, request.member_id, request.group_instance_id)
        if refusal is not ErrorCode.NONE:
            turn.answer(token, answers.join_refused(request.member_id, refusal))
            return
        member = group.members[request.member_id]
        same = member.offers_the_same(request.protocols)
        is_leader = group.leader == member.member_id
        if group.state is GroupState.COMPLETING_REBALANCE and same:
            turn.answer(token, answers.joined(group, member, tells_members=is_leader))
        elif group.state is GroupState.STABLE and same and not is_leader:
            turn.answer(token, answers.joined(group, member, tells_members=False))
        elif group.state is GroupState.EMPTY:
            turn.answer(token, answers.join_refused(request.member_id, ErrorCode.UNKNOWN_MEMBER_ID))
        else:
            self._answer_join(
                turn, member, answers.join_refused(member.member_id, ErrorCode.REBALANCE_IN_PROGRESS)
            )
            self._update(member, token, request)
            self._rebalance_if_possible(turn, group)

    def _add(self, turn: Turn, group: Group, token: int, request: Join, member_id: str) -> None:
        member = Member(
            member_id=member_id,
            group_instance_id=request.group_instance_id,
            client_id=request.client_id,
            client_host=request.client_host,
            rebalance_timeout_ms=request.rebalance_timeout_ms,
            session_timeout_ms=request.session_timeout_ms,
            protocol_type=request.protocol_type,
            protocols=request.protocols,
            is_new=True,
            awaiting_join=token,
        )
        if group.state is GroupState.PREPARING_REBALANCE and group.generation == 0:
            group.new_member_added = True
        group.add(member)
        self.expect_by(turn, group, member, NEW_MEMBER_JOIN_TIMEOUT_MS)
        self._rebalance_if_possible(turn, group)

    @staticmethod
    def _update(member: Member, token: int | None, request: Join) -> None:
        member.protocols = request.protocols
        member.rebalance_timeout_ms = request.rebalance_timeout_ms
        member.session_timeout_ms = request.session_timeout_ms
        member.awaiting_join = token

    # -- static members ----------------------------------------------------------------------

    def _replace_static(
        self, turn: Turn, group: Group, token: int, request: Join, old_id: str, new_id: str
    ) -> None:
        """A static member is back with a new id: fence the old id and keep the member's place."""
        instance_id = request.group_instance_id
        assert instance_id is not None, "only static members are replaced"
        old_leader = group.leader
        old = group.members[old_id]
        self._answer_join(turn, old, answers.join_refused(old_id, ErrorCode.FENCED_INSTANCE_ID))
        self._answer_sync(turn, old, answers.sync_refused(ErrorCode.FENCED_INSTANCE_ID))
        member = group.rename_static(instance_id, old_id, new_id)
        member.timer_at_ms = None
        patience_before = (member.rebalance_timeout_ms, member.session_timeout_ms)
        self._update(member, token, request)
        self.expect_heartbeat(turn, group, member)
        if group.state is GroupState.COMPLETING_REBALANCE:
            self.gather(turn, group)
        elif group.state is GroupState.STABLE and group.select_protocol() != group.protocol_name:
            self._rebalance_if_possible(turn, group)
        elif group.state is GroupState.STABLE:
            then = ReplaceStaticMember(group, member, request, old_id, new_id, old_leader, *patience_before)
            self._store(turn, group, {}, f"static member {instance_id} came back", then)

    def static_member_stored(self, turn: Turn, write: ReplaceStaticMember, error: ErrorCode) -> None:
        """The new id is committed: answer the JoinGroup. If the write failed, restore the old id."""
        group, member, request = write.group, write.member, write.request
        if group.members.get(write.new_id) is not member:
            return
        if error is ErrorCode.NONE:
            response = answers.static_rejoined(group, member, write.old_leader, request.may_skip_assignment)
            self._answer_join(turn, member, response)
            self.expect_heartbeat(turn, group, member)
            return
        if member.awaiting_join is None:
            return  # The group has gathered since, so the member was told its new id and uses it.
        # The new protocols stay: other members may have joined because of them.
        member.rebalance_timeout_ms = write.old_rebalance_timeout_ms
        member.session_timeout_ms = write.old_session_timeout_ms
        waiting, member.awaiting_join = member.awaiting_join, None
        assert request.group_instance_id is not None, "only static members are replaced"
        group.rename_static(request.group_instance_id, write.new_id, write.old_id)
        member.timer_at_ms = None
        self.expect_heartbeat(turn, group, member)
        turn.answer(waiting, answers.static_not_stored(group, write.old_leader, _to_members(error)))

    # -- gathering ---------------------------------------------------------------------------

    def _rebalance_if_possible(self, turn: Turn, group: Group) -> None:
        if group.may_rebalance:
            self.gather(turn, group)

    def gather(self, turn: Turn, group: Group) -> None:
        """Start a rebalance: members that wait for an assignment must join again."""
        if group.state is GroupState.COMPLETING_REBALANCE:
            self._fail_syncs(turn, group, ErrorCode.REBALANCE_IN_PROGRESS)
        group.sync_deadline_ms = None
        delay_ms = group.rebalance_timeout_ms
        group.initial_delay_left_ms = None
        if group.state is GroupState.EMPTY:
            initial_ms = self._shard.config.group_initial_rebalance_delay_ms
            group.initial_delay_left_ms = max(delay_ms - initial_ms, 0)
            group.new_member_added = False
            delay_ms = initial_ms
        group.move_to(GroupState.PREPARING_REBALANCE, turn.now.wall_ms)
        self._gather_until(turn, group, delay_ms)
        self.complete_join_if_all_are_here(turn, group)

    def _gather_until(self, turn: Turn, group: Group, delay_ms: int) -> None:
        group.join_deadline_ms = turn.now.monotonic_ms + delay_ms
        self._shard.timers.at(group.join_deadline_ms, TimerKind.JOIN, group.group_id)

    def complete_join_if_all_are_here(self, turn: Turn, group: Group) -> None:
        """Complete the rebalance when all have joined; the first one of an empty group lasts its delay."""
        if (
            group.state is GroupState.PREPARING_REBALANCE
            and group.initial_delay_left_ms is None
            and group.everyone_joined
        ):
            self._complete_join(turn, group)

    def on_join_deadline(self, turn: Turn, group: Group) -> None:
        """Complete the rebalance with the members that have joined, or extend the initial delay."""
        left_ms = group.initial_delay_left_ms
        if left_ms is not None and left_ms > 0 and group.new_member_added:
            group.new_member_added = False
            delay_ms = min(self._shard.config.group_initial_rebalance_delay_ms, left_ms)
            group.initial_delay_left_ms = left_ms - delay_ms
            self._gather_until(turn, group, delay_ms)
            return
        group.initial_delay_left_ms = None
        self._complete_join(turn, group)

    def _complete_join(self, turn: Turn, group: Group) -> None:
        for member in [m for m in group.members.values() if m.awaiting_join is None and not m.is_static]:
            group.remove(member.member_id)
        if not group.elect_joined_leader() and group.members:
            self._gather_until(turn, group, max(group.rebalance_timeout_ms, GATHER_AGAIN_MS_MIN))
            return
        group.join_deadline_ms = None
        group.initial_delay_left_ms = None
        group.generation += 1
        group.pending_syncs.clear()
        if not group.members:
            self._become_empty(turn, group)
            return
        group.protocol_name = group.select_protocol()
        group.subscribed_topics = subscribed_topics(group)
        group.move_to(GroupState.COMPLETING_REBALANCE, turn.now.wall_ms)
        for member in group.members.values():
            is_leader = group.leader == member.member_id
            self._answer_join(turn, member, answers.joined(group, member, tells_members=is_leader))
            member.is_new = False
            self.expect_heartbeat(turn, group, member)
            group.pending_syncs.add(member.member_id)
        group.sync_deadline_ms = turn.now.monotonic_ms + group.rebalance_timeout_ms
        self._shard.timers.at(group.sync_deadline_ms, TimerKind.SYNC, group.group_id)

    def _become_empty(self, turn: Turn, group: Group) -> None:
        group.protocol_name = None
        group.leader = None
        group.subscribed_topics = subscribed_topics(group)
        group.move_to(GroupState.EMPTY, turn.now.wall_ms)
        self._store(turn, group, {}, f"group {group.group_id} is empty", StoreEmptyGroup())

    # -- assignment --------------------------------------------------------------------------

    def sync(
        self, turn: Turn, group: Group, token: int, member_id: str, assignments: dict[str, bytes]
    ) -> None:
        """A member asks for its assignment; the leader brings all. The caller has checked who asks."""
        member = group.members[member_id]
        match group.state:
            case GroupState.STABLE:
                group.pending_syncs.discard(member_id)
                turn.answer(token, answers.synced(group, member))
                self.expect_heartbeat(turn, group, member)
            case GroupState.COMPLETING_REBALANCE:
                self._answer_sync(turn, member, answers.sync_refused(ErrorCode.REBALANCE_IN_PROGRESS))
                member.awaiting_sync = token
                group.pending_syncs.discard(member_id)
                if group.leader == member_id:
                    self._store_assignment(turn, group, assignments)
            case GroupState.PREPARING_REBALANCE:
                turn.answer(token, answers.sync_refused(ErrorCode.REBALANCE_IN_PROGRESS))
            case _:
                turn.answer(token, answers.sync_refused(ErrorCode.UNKNOWN_MEMBER_ID))

    def _store_assignment(self, turn: Turn, group: Group, assignments: dict[str, bytes]) -> None:
        complete = {member_id: assignments.get(member_id, b"") for member_id in group.members}
        then = StoreAssignment(group, group.generation)
        self._store(turn, group, complete, f"assignment of generation {group.generation}", then)

    def assignment_stored(self, turn: Turn, write: StoreAssignment, error: ErrorCode) -> None:
        """The assignment is committed: hand it out as stored. If the write failed, members join again."""
        group = write.group
        if group.state is not GroupState.COMPLETING_REBALANCE or group.generation != write.generation:
            return
        if error is not ErrorCode.NONE:
            self._fail_syncs(turn, group, _to_members(error))
            self._rebalance_if_possible(turn, group)
            return
        group.move_to(GroupState.STABLE, turn.now.wall_ms)
        stored = stored_assignments(group)
        for member in group.members.values():
            member.assignment = stored.get(member.member_id, b"")
            if member.awaiting_sync is not None:
                self._answer_sync(turn, member, answers.synced(group, member))
                self.expect_heartbeat(turn, group, member)

    def _store(
        self, turn: Turn, group: Group, assignments: dict[str, bytes], reason: str, then: GroupWrite
    ) -> None:
        record = group_record(group, assignments, turn.now.wall_ms)
        self._shard.writes.begin(turn, group.group_id, (record,), then, reason)

    def _fail_syncs(self, turn: Turn, group: Group, error: ErrorCode) -> None:
        for member in group.members.values():
            member.assignment = b""
            if member.awaiting_sync is not None:
                self._answer_sync(turn, member, answers.sync_refused(error))
                self.expect_heartbeat(turn, group, member)

    def on_sync_deadline(self, turn: Turn, group: Group) -> None:
        """Remove members that did not send SyncGroup in time, and start a rebalance."""
        group.sync_deadline_ms = None
        silent = set(group.pending_syncs)
        if group.state not in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE) or not silent:
            return
        for member_id in sorted(silent):
            group.remove(member_id)
        self.gather(turn, group)

    # -- leaving and dying -------------------------------------------------------------------

    def remove(self, turn: Turn, group: Group, member: Member) -> None:
        """Remove a member; the others rebalance."""
        self._answer_join(turn, member, answers.join_refused(NOBODY, ErrorCode.UNKNOWN_MEMBER_ID))
        self._answer_sync(turn, member, answers.sync_refused(ErrorCode.UNKNOWN_MEMBER_ID))
        group.remove(member.member_id)
        if group.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
            self.gather(turn, group)
        else:
            self.complete_join_if_all_are_here(turn, group)

    def remove_pending(self, turn: Turn, group: Group, member_id: str) -> None:
        """Stop waiting for a member id that was handed out and not used."""
        group.pending_members.pop(member_id, None)
        self.complete_join_if_all_are_here(turn, group)

    # -- being alive -------------------------------------------------------------------------

    def expect_heartbeat(self, turn: Turn, group: Group, member: Member) -> None:
        """Restart the member's session time-out."""
        self.expect_by(turn, group, member, member.session_timeout_ms)

    def expect_by(self, turn: Turn, group: Group, member: Member, patience_ms: int) -> None:
        member.deadline_ms = turn.now.monotonic_ms + patience_ms
        if member.timer_at_ms is None or member.deadline_ms < member.timer_at_ms:
            member.timer_at_ms = member.deadline_ms
            self._shard.timers.at(member.deadline_ms, TimerKind.MEMBER, group.group_id, member.member_id)

    @staticmethod
    def _answer_join(turn: Turn, member: Member, response: object) -> None:
        if member.awaiting_join is not None:
            turn.answer(member.awaiting_join, response)
            member.awaiting_join = None

    @staticmethod
    def _answer_sync(turn: Turn, member: Member, response: object) -> None:
        if member.awaiting_sync is not None:
            turn.answer(member.awaiting_sync, response)
            member.awaiting_sync = None


def _to_members(error: ErrorCode) -> ErrorCode:
    return STORE_ERRORS.get(error, error)


def who_is_it(group: Group, member_id: str, instance_id: str | None) -> ErrorCode:
    """Whether this is a member of the group; one with an instance id must be its current owner."""
    if instance_id is not None:
        current = group.static_members.get(instance_id)
        if current is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE if current == member_id else ErrorCode.FENCED_INSTANCE_ID
    return ErrorCode.NONE if member_id in group.members else ErrorCode.UNKNOWN_MEMBER_ID
