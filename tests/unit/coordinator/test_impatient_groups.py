"""Members that wait for nobody: however small their time-outs, a turn of the coordinator comes to its end."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from ottla.config.group import GroupConfig
from ottla.coordinator.group.core import GroupShard
from ottla.coordinator.group.members import Protocol
from ottla.coordinator.group.requests import Join
from ottla.coordinator.group.states import GroupState
from ottla.coordinator.shard import Answer, Append, Effect, Moment
from ottla.coordinator.timers import Due, Timers
from ottla.model.errors import ErrorCode
from ottla.wire.apis.leave_group import MemberIdentity
from ottla.wire.apis.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

GROUP = "g"
SESSION_MS = 6_000


class BoundedTimers(Timers):
    """One turn has its end, or the test has."""

    __slots__ = ("pops",)

    def pop_due(self, now_ms: int) -> Due | None:
        self.pops = getattr(self, "pops", 0) + 1
        assert self.pops < 1_000, "this turn does not end"
        return super().pop_due(now_ms)


class Conversation:
    """A shard whose writes succeed at once; what it answered, by token."""

    def __init__(self) -> None:
        uuids = itertools.count()
        self.shard = GroupShard(GroupConfig(group_initial_rebalance_delay_ms=0), lambda: str(next(uuids)))
        self.shard.state.timers = BoundedTimers()
        self.answers: dict[int, Any] = {}
        self.now = Moment(0, 0)
        self._tokens = itertools.count()

    def take(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Answer):
                self.answers[effect.token] = effect.response
            elif isinstance(effect, Append):
                self.take(self.shard.appended(effect.ticket, ErrorCode.NONE, self.now))

    def join(self, instance: str, rebalance_timeout_ms: int, member_id: str = "") -> int:
        token = next(self._tokens)
        join = Join(
            group_id=GROUP,
            member_id=member_id,
            group_instance_id=instance,
            client_id="client",
            client_host="/127.0.0.1",
            rebalance_timeout_ms=rebalance_timeout_ms,
            session_timeout_ms=SESSION_MS,
            protocol_type="consumer",
            protocols=(Protocol("range", b""),),
            must_know_its_id=False,
            may_skip_assignment=True,
        )
        self.take(self.shard.join(token, join, self.now))
        return token

    def sync(self, member_id: str, generation: int, *shares: str) -> None:
        request = SyncGroupRequest(
            group_id=GROUP,
            member_id=member_id,
            generation_id=generation,
            assignments=[SyncGroupRequestAssignment(share, b"share") for share in shares],
        )
        self.take(self.shard.sync(next(self._tokens), request, self.now))

    def leave(self, instance: str) -> None:
        gone = MemberIdentity(member_id="", group_instance_id=instance)
        self.take(self.shard.leave(next(self._tokens), GROUP, [gone], self.now))

    def tick(self, now_ms: int) -> None:
        self.now = Moment(now_ms, now_ms)
        self.take(self.shard.tick(self.now))


def two_static_members(rebalance_timeout_ms: int) -> Conversation:
    """Both are in a stable group and came back, to say that they wait for nobody any more."""
    talk = Conversation()
    first = talk.join("a", SESSION_MS)
    talk.tick(0)
    second = talk.join("b", SESSION_MS)
    again = talk.join("a", SESSION_MS, talk.answers[first].member_id)
    members = [talk.answers[again].member_id, talk.answers[second].member_id]
    for member_id in members:
        talk.sync(member_id, talk.answers[second].generation_id, *members)
    for instance in ("a", "b"):
        talk.join(instance, rebalance_timeout_ms)
    assert talk.shard.groups[GROUP].state is GroupState.STABLE
    return talk


@pytest.mark.parametrize("rebalance_timeout_ms", [0, -1, -(2**31)])
def test_group_whose_static_members_are_away_is_looked_at_again_later(rebalance_timeout_ms: int) -> None:
    talk = two_static_members(rebalance_timeout_ms)

    talk.leave("b")
    talk.tick(1)

    deadline_ms = talk.shard.next_deadline_ms()
    assert deadline_ms is not None
    assert deadline_ms > 1
    token = talk.join("a", rebalance_timeout_ms)
    assert talk.answers[token].error_code == ErrorCode.NONE


def test_group_whose_static_members_never_come_back_is_empty_after_their_session() -> None:
    talk = two_static_members(0)
    talk.leave("b")

    for now_ms in range(1, SESSION_MS + 300, 50):
        talk.tick(now_ms)

    assert talk.shard.groups[GROUP].state is GroupState.EMPTY
