"""Committed offsets: who may commit, when a commit is answered, when offsets expire."""

from collections.abc import Iterable

from ottla.coordinator.group.answers import commit_answer
from ottla.coordinator.group.group import Group
from ottla.coordinator.group.members import NOBODY
from ottla.coordinator.group.metadata import restore
from ottla.coordinator.group.rebalance import Rebalance, who_is_it
from ottla.coordinator.group.requests import Commit
from ottla.coordinator.group.shard_state import CommitOffsets, DropOffsets, ShardState
from ottla.coordinator.group.states import GroupState
from ottla.coordinator.group.stored.records import (
    group_tombstone,
    offset_key,
    offset_keys_head,
    offset_record,
    offset_tombstone,
)
from ottla.coordinator.shard import Turn
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
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
"""The error code that the client gets when a write of offsets fails; REQUEST_TIMED_OUT stays as it is."""

COMMITS_BASE_SEQUENCE = 0
"""Kafka writes 0 into batches of commits, and −1 into other batches without a producer id."""

TOMBSTONE_ACKS = 0
"""Nobody waits for tombstones, and they are written even if the ISR is smaller than min.insync.replicas."""


class Offsets:
    """Committing, deleting and expiring offsets, for the groups of one shard."""

    def __init__(self, shard: ShardState, rebalance: Rebalance) -> None:
        self._shard = shard
        self._rebalance = rebalance

    # -- committing --------------------------------------------------------------------------

    def commit(self, turn: Turn, group: Group, token: int, request: Commit) -> None:
        """Write the offsets; the commit is answered once they are committed in the log."""
        refusal = self._may_commit(group, request)
        if refusal is not ErrorCode.NONE:
            turn.answer(token, commit_answer(request, refusal))
            return
        member = group.members.get(request.member_id)
        if member is not None and request.producer is None:
            self._rebalance.expect_heartbeat(turn, group, member)
        limit = self._shard.config.offset_metadata_max_bytes
        too_large = frozenset(
            tp for tp, offset in request.offsets.items() if java_length(offset.metadata) > limit
        )
        records = tuple(
            offset_record(group.group_id, tp, offset)
            for tp, offset in request.offsets.items()
            if tp not in too_large
        )
        if not records:
            turn.answer(token, commit_answer(request, ErrorCode.NONE, too_large))
            return
        self._shard.writes.begin(
            turn,
            group.group_id,
            records,
            CommitOffsets(token, request, too_large),
            f"offsets of group {group.group_id}",
            base_sequence=COMMITS_BASE_SEQUENCE,
            producer=request.producer,
            verification=request.verification,
        )

    def committed(self, turn: Turn, write: CommitOffsets, error: ErrorCode) -> None:
        """Answer the commit."""
        error = APPEND_ERRORS.get(error, error)
        turn.answer(write.token, commit_answer(write.request, error, write.too_large))

    @staticmethod
    def _may_commit(group: Group, request: Commit) -> ErrorCode:
        """Without a generation only a simple consumer's group, which has no members, may commit.

        In a transaction a client may leave out who it is, and may commit during a rebalance.
        """
        is_simple = request.generation < 0
        names_member = not is_simple or request.member_id != NOBODY or request.group_instance_id is not None
        if group.state is GroupState.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if is_simple and group.state is GroupState.EMPTY:
            return ErrorCode.NONE
        if not names_member:
            return ErrorCode.UNKNOWN_MEMBER_ID if request.producer is None else ErrorCode.NONE
        refusal = who_is_it(group, request.member_id, request.group_instance_id)
        if refusal is not ErrorCode.NONE:
            return refusal
        if request.generation != group.generation:
            return ErrorCode.ILLEGAL_GENERATION
        if group.state is GroupState.COMPLETING_REBALANCE and request.producer is None:
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    def pending_commits(self, group_id: str) -> set[TopicPartition]:
        """The partitions for which a commit is under way."""
        keys = map(decode_group_key, self._shard.writes.targets(group_id))
        return {TopicPartition(key.topic, key.partition) for key in keys if isinstance(key, OffsetCommitKey)}

    def waiting_commits(self, group_id: str) -> set[TopicPartition]:
        """The partitions whose offset waits for a marker."""
        transactions = self._shard.stored.transactions
        if not transactions:
            return set()
        keys = map(decode_group_key, transactions.keys_with(offset_keys_head(group_id)))
        return {TopicPartition(key.topic, key.partition) for key in keys if isinstance(key, OffsetCommitKey)}

    def waiting_groups(self) -> set[str]:
        """The groups of which an offset waits for a marker."""
        keys = map(decode_group_key, self._shard.stored.transactions.keys_with(b""))
        return {key.group for key in keys if isinstance(key, OffsetCommitKey)}

    def unstable(self, group_id: str, partitions: Iterable[TopicPartition]) -> frozenset[TopicPartition]:
        """Those of these partitions whose offset is about to change, by a commit or by a marker."""
        pending, transactions = self.pending_commits(group_id), self._shard.stored.transactions
        if not transactions and not pending:
            return frozenset()
        return frozenset(
            tp for tp in partitions if tp in pending or transactions.is_waiting(offset_key(group_id, tp))
        )

    # -- dropping ----------------------------------------------------------------------------

    def drop(self, turn: Turn, group: Group, partitions: Iterable[TopicPartition], reason: str) -> None:
        """Write tombstones for offsets, committed or under way; an empty group goes with the last one."""
        pending, waiting = self.pending_commits(group.group_id), self.waiting_commits(group.group_id)
        dropped = [tp for tp in partitions if tp in group.offsets or tp in pending or tp in waiting]
        if group.state is GroupState.EMPTY and self._is_last(group, dropped, pending, waiting):
            group.move_to(GroupState.DEAD, turn.now.wall_ms)
        records = [offset_tombstone(group.group_id, tp) for tp in dropped]
        if group.state is GroupState.DEAD and group.generation > 0:
            records.append(group_tombstone(group.group_id))
        if records:
            self._shard.writes.begin(
                turn, group.group_id, tuple(records), DropOffsets(group), reason, acks=TOMBSTONE_ACKS
            )
        elif group.state is GroupState.DEAD:
            self._shard.stored.remove(group.group_id)

    @staticmethod
    def _is_last(
        group: Group,
        dropped: list[TopicPartition],
        pending: set[TopicPartition],
        waiting: set[TopicPartition],
    ) -> bool:
        committed = sum(tp in group.offsets for tp in dropped)
        return not pending and committed == len(group.offsets) and waiting.issubset(dropped)

    def dropped(self, write: DropOffsets, error: ErrorCode) -> None:
        """A dead group is removed with its tombstones; if they could not be written, it is as before."""
        group = write.group
        if group.state is not GroupState.DEAD or self._shard.groups.get(group.group_id) is not group:
            return
        self._shard.stored.remove(group.group_id)
        if error is not ErrorCode.NONE:
            revived = self._shard.groups[group.group_id] = Group(group.group_id, group.stored)
            if group.stored.metadata is not None:
                restore(revived)

    def expire(self, turn: Turn, group: Group) -> None:
        """Drop what was kept long enough; a group in use keeps the offsets of its subscribed topics."""
        old = self._expired(group, turn.now.wall_ms)
        unused = group.state is GroupState.EMPTY and not group.offsets and not group.pending_members
        if old or (unused and not self._is_under_way(group.group_id)):
            self.drop(turn, group, old, f"offsets of group {group.group_id} expired")

    def _is_under_way(self, group_id: str) -> bool:
        return bool(self.pending_commits(group_id) or self.waiting_commits(group_id))

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
        pending = self.pending_commits(group.group_id)
        for tp, offset in group.offsets.items():
            if tp.topic in in_use or tp in pending:
                continue
            if offset.expire_timestamp_ms >= 0:
                is_old = wall_ms >= offset.expire_timestamp_ms
            else:
                is_old = wall_ms - (since if since is not None else offset.commit_timestamp_ms) >= kept_ms
            if is_old:
                old.append(tp)
        return old
