"""Ten thousand names of groups that nobody means: what they leave behind in memory is nothing."""

from __future__ import annotations

import itertools

from ottla.config.group import GroupConfig
from ottla.coordinator.group.core import GroupShard
from ottla.coordinator.group.members import Protocol
from ottla.coordinator.group.requests import Commit, Join
from ottla.coordinator.group.stored.committed import CommittedOffset
from ottla.coordinator.shard import Answer, Moment
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.wire.apis.sync_group import SyncGroupRequest

GROUPS = 10_000
SESSION_MS = 6_000
START = Moment(0, 0)


def a_shard() -> GroupShard:
    uuids = itertools.count()
    return GroupShard(GroupConfig(), lambda: str(next(uuids)))


def a_join(group: str, member_id: str = "", protocols: tuple[Protocol, ...] | None = None) -> Join:
    return Join(
        group_id=group,
        member_id=member_id,
        group_instance_id=None,
        client_id="client",
        client_host="/127.0.0.1",
        rebalance_timeout_ms=SESSION_MS,
        session_timeout_ms=SESSION_MS,
        protocol_type="consumer",
        protocols=(Protocol("range", b""),) if protocols is None else protocols,
        must_know_its_id=True,
        may_skip_assignment=True,
    )


def test_requests_that_are_refused_leave_no_group_behind() -> None:
    shard = a_shard()

    for number in range(GROUPS):
        group = f"g-{number}"
        shard.join(1, a_join(group, protocols=()), START)
        shard.join(1, a_join(group, "stranger"), START)
        shard.sync(1, SyncGroupRequest(group_id=group, member_id="stranger", generation_id=1), START)
        shard.heartbeat(1, group, "stranger", None, 1, START)
        shard.commit(1, Commit(group, "stranger", None, 1, {}, {}), START)
        shard.delete_group(group, START)

    assert not shard.groups
    assert not len(shard.writes)
    assert shard.next_deadline_ms() is None


def test_ids_that_are_never_used_are_forgotten_with_their_groups() -> None:
    shard = a_shard()
    for number in range(GROUPS):
        shard.join(number, a_join(f"g-{number}"), START)
    held = len(shard.groups)

    shard.tick(Moment(SESSION_MS, SESSION_MS))

    assert held == GROUPS
    assert not shard.groups
    assert shard.next_deadline_ms() is None


def test_commits_that_fail_leave_no_group_that_outlives_the_next_expiry() -> None:
    shard = a_shard()
    offset = CommittedOffset(1, -1, "", 0)
    for number in range(GROUPS):
        commit = Commit(f"g-{number}", "", None, -1, {TopicPartition("orders", 0): offset}, {})
        shard.commit(number, commit, START)

    answers = [
        effect
        for ticket in list(shard.writes)
        for effect in shard.appended(ticket, ErrorCode.NOT_ENOUGH_REPLICAS, START)
    ]
    shard.expire_offsets(START)

    assert sum(isinstance(effect, Answer) for effect in answers) == GROUPS
    assert not shard.groups
    assert not len(shard.writes)
