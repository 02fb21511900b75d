"""Whatever happens to a shard, replaying the committed records gives the state that it has."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.config.group import GroupConfig
from ottla.coordinator.group.core import GroupShard
from ottla.coordinator.group.members import Protocol
from ottla.coordinator.group.requests import Commit, Join
from ottla.coordinator.group.states import GroupState
from ottla.coordinator.group.stored.committed import CommittedOffset
from ottla.coordinator.shard import Answer, Append, Effect, Moment, Producer
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.wire.apis.join_group import JoinGroupResponse
from ottla.wire.apis.leave_group import MemberIdentity
from ottla.wire.apis.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

GROUPS = ("g", "h")
CLIENTS = ("anna", "ben", "static")
PRODUCERS = (1, 2)
PARTITIONS = (TopicPartition("orders", 0), TopicPartition("orders", 1), TopicPartition("prices", 0))
CONFIG = GroupConfig(
    group_initial_rebalance_delay_ms=0,
    offsets_retention_minutes=1,
    offsets_retention_check_interval_ms=20_000,
)
SESSION_MS = 6_000
REBALANCE_MS = 8_000


@dataclass
class Marker:
    """The end of a transaction, as the log has it."""

    producer_id: int
    is_commit: bool


class History:
    """A live shard and its log. Entries are committed in the order of the log, those with acks=0 at once."""

    def __init__(self) -> None:
        self.now_ms = 1_000
        self.log: list[Append | Marker] = []
        self.committed: set[int] = set()
        """Indexes of the log's entries."""
        self.pending: list[int] = []
        self.members: dict[tuple[str, str], JoinGroupResponse] = {}
        self.asked: dict[int, tuple[str, str]] = {}
        self.tokens = itertools.count()
        self.uuids = itertools.count()
        self.offsets = itertools.count()
        self.shard = GroupShard(CONFIG, lambda: f"#{next(self.uuids)}")
        self.shard.loaded(self.now)

    @property
    def now(self) -> Moment:
        return Moment(self.now_ms, self.now_ms)

    def perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Answer():
                    self.hear(effect)
                case Append():
                    self.log.append(effect)
                    self.pending.append(len(self.log) - 1)
                    if effect.acks == 0:
                        self.settle(self.pending.pop(), ErrorCode.NONE)

    def hear(self, answer: Answer) -> None:
        if not isinstance(answer.response, JoinGroupResponse):
            return
        if answer.response.error_code in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
            self.members[self.asked[answer.token]] = answer.response
        else:
            self.members.pop(self.asked[answer.token], None)

    def settle(self, index: int, error: ErrorCode) -> None:
        entry = self.log[index]
        if error is ErrorCode.NONE:
            self.committed.add(index)
        if isinstance(entry, Append):
            self.perform(self.shard.appended(entry.ticket, error, self.now))
        elif error is ErrorCode.NONE:
            self.shard.end_transaction(entry.producer_id, is_commit=entry.is_commit)

    # -- steps -------------------------------------------------------------------------------

    def join(self, group: str, client: str) -> None:
        token = next(self.tokens)
        self.asked[token] = group, client
        known = self.members.get((group, client))
        instance = client if client == "static" else None
        protocols = (Protocol("range", b"%d" % self.now_ms),)
        self.perform(
            self.shard.join(
                token,
                Join(
                    group_id=group,
                    member_id=known.member_id if known is not None and instance is None else "",
                    group_instance_id=instance,
                    client_id=client,
                    client_host="/127.0.0.1",
                    rebalance_timeout_ms=REBALANCE_MS,
                    session_timeout_ms=SESSION_MS,
                    protocol_type="consumer",
                    protocols=protocols,
                    must_know_its_id=client == "anna",
                    may_skip_assignment=True,
                ),
                self.now,
            )
        )

    def sync(self, group: str, client: str) -> None:
        known = self.members.get((group, client))
        if known is not None:
            shares = [
                SyncGroupRequestAssignment(
                    member.member_id, f"{known.generation_id} {member.member_id}".encode()
                )
                for member in known.members
            ]
            request = SyncGroupRequest(
                group_id=group,
                generation_id=known.generation_id,
                member_id=known.member_id,
                assignments=shares,
            )
            self.perform(self.shard.sync(next(self.tokens), request, self.now))

    def gather(self, group: str, client: str) -> None:
        """Two members join and sync, as they would if nobody disturbed them."""
        both = (client, CLIENTS[CLIENTS.index(client) - 1])
        for each in both * 2:
            self.join(group, each)
        self._advance(1)
        for each in both:
            self.sync(group, each)

    def leave(self, group: str, client: str) -> None:
        known = self.members.pop((group, client), None)
        if known is not None:
            leaving = [MemberIdentity(member_id=known.member_id)]
            self.perform(self.shard.leave(next(self.tokens), group, leaving, self.now))

    def commit(self, group: str, client: str) -> None:
        self._commit(group, client, PARTITIONS[:2], None)

    def commit_all(self, group: str, client: str) -> None:
        self._commit(group, client, PARTITIONS, None)

    def commit_in_transaction(self, group: str, client: str) -> None:
        producer_id = PRODUCERS[len(client) % 2]
        self._commit(group, client, PARTITIONS[1:], Producer(producer_id, 0))

    def _commit(
        self, group: str, client: str, partitions: tuple[TopicPartition, ...], producer: Producer | None
    ) -> None:
        known = self.members.get((group, client))
        member_id, generation = (known.member_id, known.generation_id) if known is not None else ("", -1)
        offset = CommittedOffset(next(self.offsets), -1, "", self.now_ms)
        request = Commit(group, member_id, None, generation, dict.fromkeys(partitions, offset), {}, producer)
        self.perform(self.shard.commit(next(self.tokens), request, self.now))

    def end_commit(self, group: str, client: str) -> None:
        self._end(client, is_commit=True)

    def end_abort(self, group: str, client: str) -> None:
        self._end(client, is_commit=False)

    def _end(self, client: str, *, is_commit: bool) -> None:
        self.log.append(Marker(PRODUCERS[len(client) % 2], is_commit))
        self.pending.append(len(self.log) - 1)

    def delete_group(self, group: str, client: str) -> None:
        self.perform(self.shard.delete_group(group, self.now)[1])

    def delete_offsets(self, group: str, client: str) -> None:
        self.perform(self.shard.delete_offsets(group, PARTITIONS[:1], self.now)[2])

    def delete_topic(self, group: str, client: str) -> None:
        self.perform(self.shard.partitions_deleted(PARTITIONS[2:], self.now))

    def commit_next(self, group: str, client: str) -> None:
        if self.pending:
            self.settle(self.pending.pop(0), ErrorCode.NONE)

    def commit_everything(self, group: str, client: str) -> None:
        while self.pending:
            self.commit_next(group, client)

    def fail_next(self, group: str, client: str) -> None:
        if self.pending:
            self.settle(self.pending.pop(0), ErrorCode.REQUEST_TIMED_OUT)

    def wait_a_moment(self, group: str, client: str) -> None:
        self._advance(1)

    def wait_out_a_session(self, group: str, client: str) -> None:
        self._advance(SESSION_MS + 1)

    def wait_for_expiry(self, group: str, client: str) -> None:
        self._advance(61_000)

    def _advance(self, ms: int) -> None:
        until_ms = self.now_ms + ms
        while (deadline_ms := self.shard.next_deadline_ms()) is not None and deadline_ms <= until_ms:
            self.now_ms = max(self.now_ms, deadline_ms)
            self.perform(self.shard.tick(self.now))
        self.now_ms = until_ms

    def move(self, group: str, client: str) -> None:
        """Another broker loads what is committed; the rest of the log is cut off."""
        self.shard.unload(self.now)
        self.pending.clear()
        self.shard = self.replayed()
        for _ in self.shard.restore():
            pass
        self.perform(self.shard.loaded(self.now))

    def replayed(self) -> GroupShard:
        shard = GroupShard(CONFIG, lambda: f"#{next(self.uuids)}")
        for index, entry in enumerate(self.log):
            if index not in self.committed:
                continue
            if isinstance(entry, Marker):
                shard.end_transaction(entry.producer_id, is_commit=entry.is_commit)
            else:
                shard.apply(entry.records, entry.producer.producer_id if entry.producer else None)
        return shard


def stored_state(shard: GroupShard) -> tuple[dict[str, Any], Any]:
    groups = {
        group.group_id: (group.stored.metadata, dict(group.offsets))
        for group in shard.groups.values()
        if group.stored.metadata is not None or group.offsets
    }
    return groups, shard.state.stored.transactions.waiting()


def live_state(shard: GroupShard) -> dict[str, Any]:
    """What requests are answered from, of groups in which nothing is under way."""
    return {
        group.group_id: (group.state, group.generation, group.protocol_name, group.leader, set(group.members))
        for group in shard.groups.values()
        if group.state is GroupState.STABLE and not shard.writes.targets(group.group_id)
    }


OFTEN: list[Callable[[History, str, str], None]] = [
    History.join,
    History.sync,
    History.gather,
    History.commit,
    History.commit_everything,
    History.wait_a_moment,
]
SELDOM: list[Callable[[History, str, str], None]] = [
    History.leave,
    History.commit_all,
    History.commit_in_transaction,
    History.commit_in_transaction,
    History.end_commit,
    History.end_abort,
    History.delete_group,
    History.delete_offsets,
    History.delete_topic,
    History.commit_next,
    History.fail_next,
    History.wait_out_a_session,
    History.wait_for_expiry,
    History.move,
]
STEPS = st.lists(
    st.tuples(st.sampled_from(OFTEN * 3 + SELDOM), st.sampled_from(GROUPS), st.sampled_from(CLIENTS)),
    min_size=10,
    max_size=60,
)


@settings(max_examples=150)
@given(steps=STEPS)
def test_replaying_the_committed_records_gives_the_live_state(
    steps: list[tuple[Callable[[History, str, str], None], str, str]],
) -> None:
    history = History()
    for step, group, client in steps:
        step(history, group, client)

        replayed = history.replayed()

        assert stored_state(replayed) == stored_state(history.shard)


@settings(max_examples=50)
@given(steps=STEPS)
def test_a_stable_group_is_the_same_after_a_move(
    steps: list[tuple[Callable[[History, str, str], None], str, str]],
) -> None:
    history = History()
    for step, group, client in steps:
        step(history, group, client)
    before = live_state(history.shard)

    after = history.replayed()
    for _ in after.restore():
        pass

    after_all = live_state(after)
    assert before == {group: after_all.get(group) for group in before}
