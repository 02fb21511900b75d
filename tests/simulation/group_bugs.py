"""Planted bugs of groups: of their coordinator, and of Ottla's own members."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ottla.broker.coordinating.loading import Loading
from ottla.broker.replicas.hosted import Partitions
from ottla.broker.replicas.internal_append import InternalAppend
from ottla.broker.runtime.parked import Deadlines
from ottla.client.group.core import GroupConsumerCore
from ottla.client.group.membership import Membership
from ottla.coordinator.group import answers
from ottla.coordinator.group.core import GroupShard
from ottla.coordinator.group.group import Group
from ottla.coordinator.group.members import NOBODY, Member
from ottla.coordinator.group.offsets import Offsets
from ottla.coordinator.group.rebalance import Rebalance
from ottla.coordinator.group.requests import Commit
from ottla.coordinator.group.shard_state import ReplaceStaticMember
from ottla.coordinator.group.states import GroupState
from ottla.coordinator.shard import StoredRecord, Writes
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.model.internal_topics import OFFSETS_TOPIC
from simulation.planting import all_of, replaced

# The coordinator


def deleted_offsets_come_back() -> Any:
    """An offset that was deleted while a commit was on its way is there again once that is written."""

    def end(self: Writes[Any], ticket: int, *, is_committed: bool) -> Any:
        ended = original(self, ticket, is_committed=is_committed)
        return (ended[0], list(ended[0].append.records)) if ended is not None and is_committed else ended

    original = Writes.end
    return replaced(Writes, "end", end)


def buried_with_a_commit() -> Any:
    """A group whose last offset is dropped is forgotten, though another commit is on its way."""

    original = Offsets._is_last
    return replaced(
        Offsets,
        "_is_last",
        staticmethod(lambda group, dropped, pending, waiting: original(group, dropped, set(), waiting)),
    )


class _TakenForSettled(dict[int, StoredRecord]):
    """What is under way for a key of which another record was written just now."""


def stable_after_the_first_of_two() -> Any:
    """An offset counts as stable when the first of two commits is written."""

    def end(self: Writes[Any], ticket: int, *, is_committed: bool) -> Any:
        ended = original(self, ticket, is_committed=is_committed)
        if ended is not None:
            targets = self._targets.get(ended[0].entity, {})
            for key in targets.keys() & {record.key for record in ended[0].append.records}:
                targets[key] = _TakenForSettled(targets[key])
        return ended

    def targets(self: Writes[Any], entity: str) -> Any:
        under_way = self._targets.get(entity, {})
        return {key: of_key for key, of_key in under_way.items() if not isinstance(of_key, _TakenForSettled)}

    original = Writes.end
    return all_of(replaced(Writes, "end", end), replaced(Writes, "targets", targets))


def nobody_is_missed_after_a_move() -> Any:
    """A new coordinator does not watch over the members that it finds in the log."""
    return replaced(GroupShard, "loaded", lambda self, now: [])


class _ToTheWatermark:
    """A log that ends where it is surely committed."""

    def __init__(self, log: Any) -> None:
        self.log_start_offset, self.end_offset, self.read = log.log_start_offset, log.high_watermark, log.read


def loaded_to_the_watermark() -> Any:
    """A new coordinator reads to the watermark that it knows, which lags behind what was acknowledged."""

    def log(self: Partitions, partition: TopicPartition) -> Any:
        found = original(self, partition)
        return _ToTheWatermark(found) if found is not None and partition.topic == OFFSETS_TOPIC else found

    original = Partitions.log
    return replaced(Partitions, "log", log)


def served_before_it_is_safe() -> Any:
    """A new coordinator serves what it read at once, though the next leader may lack the end of it."""
    return replaced(Loading, "_is_safe", lambda self: True)


def commits_wait_for_ever() -> Any:
    """A coordinator's write that no follower takes is never given up."""

    def add(self: Deadlines, parked: Any, delay_ms: int) -> None:
        if not isinstance(parked, InternalAppend):
            original(self, parked, delay_ms)

    original = Deadlines.add
    return replaced(Deadlines, "add", add)


def the_gone_are_waited_for() -> Any:
    """A group that gathers waits on for a member that has left or died."""

    def remove(self: Rebalance, turn: Any, group: Group, member: Member) -> None:
        self._answer_join(turn, member, answers.join_refused(NOBODY, ErrorCode.UNKNOWN_MEMBER_ID))
        self._answer_sync(turn, member, answers.sync_refused(ErrorCode.UNKNOWN_MEMBER_ID))
        group.remove(member.member_id)
        if group.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
            self.gather(turn, group)

    return replaced(Rebalance, "remove", remove)


def leaders_join_in_vain() -> Any:
    """A leader that joins again, because its topics have grown, is told that nothing has changed."""

    def join_known(self: Rebalance, turn: Any, group: Group, token: int, request: Any) -> None:
        member = group.members.get(request.member_id)
        is_same = member is not None and member.offers_the_same(request.protocols)
        if member is not None and is_same and group.state is GroupState.STABLE:
            turn.answer(token, answers.joined(group, member, tells_members=False))
        else:
            original(self, turn, group, token, request)

    original = Rebalance._join_known
    return replaced(Rebalance, "_join_known", join_known)


def returned_leaders_lead_no_more() -> Any:
    """A static leader that comes back under a new id leaves its group without a leader."""

    def rename(self: Group, *arguments: Any) -> Member:
        leader = self.leader
        member = original(self, *arguments)
        self.leader = leader
        return member

    original = Group.rename_static
    return replaced(Group, "rename_static", rename)


# Static members


def replaced_members_commit() -> Any:
    """A static member may commit by its instance id, though another process has its place."""

    def may_commit(group: Group, request: Commit) -> ErrorCode:
        current = group.static_members.get(request.group_instance_id or NOBODY)
        known = request if current is None else replace(request, member_id=current)
        return original(group, known)

    original = Offsets._may_commit
    return replaced(Offsets, "_may_commit", staticmethod(may_commit))


def static_ids_not_written() -> Any:
    """A static member is told its new id before that is in the log (KAFKA-9801)."""

    def store(self: Rebalance, turn: Any, group: Group, shares: Any, reason: str, then: Any) -> None:
        if isinstance(then, ReplaceStaticMember):
            self.static_member_stored(turn, then, ErrorCode.NONE)
        else:
            original(self, turn, group, shares, reason, then)

    original = Rebalance._store
    return replaced(Rebalance, "_store", store)


def returned_members_lose_their_share() -> Any:
    """A static member that comes back is taken for a new one, which has no share yet."""

    def rename(self: Group, *arguments: Any) -> Member:
        member = original(self, *arguments)
        member.assignment = b""
        return member

    original = Group.rename_static
    return replaced(Group, "rename_static", rename)


def removed_instances_are_remembered() -> Any:
    """Whoever was removed from a group has its instance id there for ever."""

    def remove(self: Group, member_id: str) -> None:
        static = dict(self.static_members)
        original(self, member_id)
        self.static_members = static

    original = Group.remove
    return replaced(Group, "remove", remove)


def returned_members_are_never_missed() -> Any:
    """The watch over a static member goes by the id that it had before it came back."""

    def replace_static(self: Rebalance, turn: Any, group: Group, *arguments: Any) -> None:
        original(self, turn, group, *arguments)
        new_id = arguments[-1]
        if new_id in group.members:
            group.members[new_id].timer_at_ms = 0

    original = Rebalance._replace_static
    return replaced(Rebalance, "_replace_static", replace_static)


def unsettled_commits_are_told() -> Any:
    """Whoever wants a stable offset is told one that a commit on its way is about to change."""

    def unstable(self: Offsets, group_id: str, partitions: Any) -> frozenset[TopicPartition]:
        return original(self, group_id, partitions) - self.pending_commits(group_id)

    original = Offsets.unstable
    return replaced(Offsets, "unstable", unstable)


# Ottla's own members


def refused_commits_are_taken_for_done() -> Any:
    """A member does not commit again what a coordinator has refused."""

    def commit(self: GroupConsumerCore, given: Any) -> Any:
        new = {tp: at for tp, at in given.items() if self._committed.get(tp) != at.offset}
        if new:
            self._committed.update({tp: at.offset for tp, at in new.items()})
            yield from self.membership.commit(new)

    return replaced(GroupConsumerCore, "_commit", commit)


def handed_out_means_done() -> Any:
    """A member commits by itself what its program was given just now, and may die over."""

    def take(self: GroupConsumerCore, count_max: int) -> Any:
        taken = original(self, count_max)
        self._processed = self.fetching.positions()
        return taken

    original = GroupConsumerCore.take
    return replaced(GroupConsumerCore, "take", take)


def no_second_round() -> Any:
    """A cooperative member that gave partitions up does not join again, so that nobody gets them."""

    def join(self: Membership) -> Any:
        yield from original(self)
        self.is_stable = True

    original = Membership._join
    return replaced(Membership, "_join", join)


def added_while_away() -> Any:
    """A static leader that comes back takes the partitions of now for those that were shared out."""

    def counts(self: Membership, topics: Any) -> Any:
        yield from original(self, topics)
        return self._counts_of(topics)

    original = Membership._counts_shared
    return replaced(Membership, "_counts_shared", counts)
