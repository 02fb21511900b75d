"""Committed offsets: who may commit, what is answered, when they expire."""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from ottla.coordinator.group.committed import CommittedOffset
from ottla.coordinator.group.effects import StoredRecord
from ottla.coordinator.group.group import Group
from ottla.coordinator.group.members import NOBODY
from ottla.coordinator.group.rebalance import Rebalance, who_is_it
from ottla.coordinator.group.records import group_tombstone, offset_key, offset_record, offset_tombstone
from ottla.coordinator.group.shard_state import ShardState, Turn
from ottla.coordinator.group.states import GroupState
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.wire.apis.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from ottla.wire.primitives import java_length
from ottla.wire.stored import OffsetCommitKey, decode_group_key

APPEND_ERRORS: dict[ErrorCode, ErrorCode] = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
}
"""What a failed write of offsets is called towards the client; one that took too long keeps its name."""

COMMITS_BASE_SEQUENCE = 0
"""Kafka's batches of commits say 0 where its other batches without a producer say −1; so do ours."""

TOMBSTONE_ACKS = 0
"""Nobody waits for tombstones, and too small an ISR does not refuse them: what was deleted stays deleted."""


@dataclass(frozen=True, slots=True)
class Commit:
    """An OffsetCommit request; partitions that do not exist were refused before."""

    group_id: str
    member_id: str
    group_instance_id: str | None
    generation: int
    offsets: dict[TopicPartition, CommittedOffset]
    refused: dict[TopicPartition, ErrorCode]


class Offsets:
    """The rules of committing, deleting and forgetting offsets, over the groups of one shard."""

    def __init__(self, shard: ShardState, rebalance: Rebalance) -> None:
        self._shard = shard
        self._rebalance = rebalance

    def commit(self, turn: Turn, group: Group, token: int, request: Commit) -> None:
        """Write the offsets; answer once they are committed in the log."""
        refusal = self._may_commit(group, request)
        if refusal is ErrorCode.NONE and group.state is GroupState.COMPLETING_REBALANCE:
            refusal = ErrorCode.REBALANCE_IN_PROGRESS
        if refusal is not ErrorCode.NONE:
            turn.answer(token, commit_answer(request, refusal))
            return
        member = group.members.get(request.member_id)
        if member is not None:
            self._rebalance.expect_heartbeat(turn, group, member)
        limit = self._shard.config.offset_metadata_max_bytes
        too_large = {tp for tp, offset in request.offsets.items() if java_length(offset.metadata) > limit}
        taken = {tp: offset for tp, offset in request.offsets.items() if tp not in too_large}
        if not taken:
            turn.answer(token, commit_answer(request, ErrorCode.NONE, too_large))
            return
        records = tuple(offset_record(group.group_id, tp, offset) for tp, offset in taken.items())
        group.commits_begun(taken)

        def settle(later: Turn, error: ErrorCode) -> None:
            if error is ErrorCode.NONE:
                for tp, record in zip(taken, records, strict=True):
                    if group.forgotten.get(tp, 0) < ticket:
                        group.offsets.keep(record)
                        self._shard.transactions.overtaken(record.key)
            group.commits_settled(taken)
            later.answer(token, commit_answer(request, APPEND_ERRORS.get(error, error), too_large))

        reason = f"offsets of group {group.group_id}"
        ticket = self._shard.append(turn, records, reason, settle, COMMITS_BASE_SEQUENCE)

    @staticmethod
    def _may_commit(group: Group, request: Commit) -> ErrorCode:
        """Without a generation only a group without members may commit (a simple consumer's)."""
        if group.state is GroupState.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if request.generation < 0 and group.state is GroupState.EMPTY:
            return ErrorCode.NONE
        if request.generation >= 0 or request.member_id != NOBODY or request.group_instance_id is not None:
            refusal = who_is_it(group, request.member_id, request.group_instance_id)
            if refusal is ErrorCode.NONE and request.generation != group.generation:
                return ErrorCode.ILLEGAL_GENERATION
            return refusal
        return ErrorCode.UNKNOWN_MEMBER_ID

    def end_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        """A marker is in the log: the offsets of its transaction count now, or never did."""
        for record in self._shard.transactions.end(producer_id, is_commit=is_commit):
            key = decode_group_key(record.key)
            if isinstance(key, OffsetCommitKey) and record.value is not None:
                group = self._shard.groups.setdefault(key.group, Group(key.group))
                group.offsets.keep(record)

    def unstable(self, group_id: str, partitions: Iterable[TopicPartition]) -> frozenset[TopicPartition]:
        """Those of these partitions whose offset is about to change: a commit is on its way into the log, or
        a marker is still to come."""
        group, transactions = self._shard.groups.get(group_id), self._shard.transactions
        pending = group.pending_commits if group is not None else {}
        if not transactions and not pending:
            return frozenset()
        return frozenset(
            tp for tp in partitions if tp in pending or transactions.is_waiting(offset_key(group_id, tp))
        )

    def forget(self, turn: Turn, group: Group, partitions: Iterable[TopicPartition], reason: str) -> None:
        """Drop offsets, also those on their way into the log, and the group with the last of them once it has
        no members."""
        pending = group.pending_commits
        dropped = [tp for tp in partitions if tp in group.offsets or tp in pending]
        for tp in dropped:
            if tp in group.offsets:
                del group.offsets[tp]
        records = [offset_tombstone(group.group_id, tp) for tp in dropped]
        records += self._bury_if_dead(turn, group)
        if records:
            ticket = self._shard.append(
                turn, tuple(records), reason, lambda later, error: None, acks=TOMBSTONE_ACKS
            )
            group.forgotten.update({tp: ticket for tp in dropped if tp in pending})

    def _bury_if_dead(self, turn: Turn, group: Group) -> list[StoredRecord]:
        unused = group.state is GroupState.EMPTY and not group.offsets and not group.pending_commits
        if not unused and group.state is not GroupState.DEAD:
            return []
        if group.state is not GroupState.DEAD:
            group.move_to(GroupState.DEAD, turn.now.wall_ms)
        self._shard.groups.pop(group.group_id, None)
        return [group_tombstone(group.group_id)] if group.generation > 0 else []

    def expire(self, turn: Turn, group: Group) -> None:
        """Drop what was kept long enough; a group in use keeps what it is subscribed to."""
        old = self._expired(group, turn.now.wall_ms)
        unused = group.state is GroupState.EMPTY and not group.offsets and not group.pending_commits
        if old or (unused and not group.pending_members):
            self.forget(turn, group, old, f"offsets of group {group.group_id} expired")

    def _expired(self, group: Group, wall_ms: int) -> list[TopicPartition]:
        kept_ms = self._shard.config.offsets_retention_ms
        if group.protocol_type is None:
            since: int | None = None
            in_use: frozenset[str] = frozenset()
        elif group.state is GroupState.EMPTY:
            since = group.state_timestamp_ms if group.state_timestamp_ms >= 0 else None
            in_use = frozenset()
        elif (
            group.state is GroupState.STABLE
            and group.is_consumer_group
            and group.subscribed_topics is not None
        ):
            since, in_use = None, group.subscribed_topics
        else:
            return []
        old = []
        for tp, offset in group.offsets.items():
            if tp.topic in in_use or tp in group.pending_commits:
                continue
            if offset.expire_timestamp_ms >= 0:
                is_old = wall_ms >= offset.expire_timestamp_ms
            else:
                is_old = wall_ms - (since if since is not None else offset.commit_timestamp_ms) >= kept_ms
            if is_old:
                old.append(tp)
        return old


def commit_answer(
    request: Commit,
    error: ErrorCode,
    too_large: AbstractSet[TopicPartition] = frozenset(),
) -> OffsetCommitResponse:
    """One code per partition, in the order of topics as they were asked."""
    codes: dict[TopicPartition, ErrorCode] = {
        tp: ErrorCode.OFFSET_METADATA_TOO_LARGE if tp in too_large else error for tp in request.offsets
    }
    codes.update(request.refused)
    topics: dict[str, list[OffsetCommitResponsePartition]] = {}
    for tp, code in codes.items():
        topics.setdefault(tp.topic, []).append(
            OffsetCommitResponsePartition(partition_index=tp.partition, error_code=code)
        )
    return OffsetCommitResponse(
        topics=[OffsetCommitResponseTopic(name=name, partitions=rows) for name, rows in topics.items()]
    )
