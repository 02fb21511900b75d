"""Planted bugs of logs, of producers' state, and of groups."""

from __future__ import annotations

from typing import Any

from ottla.broker.coordinating.host import CoordinatorHost
from ottla.broker.coordinating.loading import Loading
from ottla.broker.replicas.hosted import Partitions
from ottla.coordinator.group.metadata import group_record
from ottla.coordinator.group.offsets import Offsets
from ottla.coordinator.group.rebalance import Rebalance
from ottla.coordinator.group.shard_state import ReplaceStaticMember, StoreAssignment, StoreEmptyGroup
from ottla.model.errors import ErrorCode
from ottla.storage.cleanup import retention
from ottla.storage.cleanup.compaction import KeyMap
from ottla.storage.log import recovery
from ottla.storage.log.leader_epochs import LeaderEpochs
from ottla.storage.log.log import Log
from ottla.storage.producers import producers
from ottla.storage.producers.state import Producer, ProducerState
from simulation.planting import all_of, replaced


def retries_are_new() -> Any:
    """A repeated batch of an idempotent producer is written again."""
    return all_of(
        replaced(ProducerState, "find_duplicate", lambda self, header: None),
        replaced(ProducerState, "refuse_batch", lambda self, header, origin: 0),
    )


def epochs_forgotten() -> Any:
    """A new leader does not note where its epoch starts (KAFKA-7415)."""
    return replaced(LeaderEpochs, "assign", lambda self, *arguments: False)


def dead_disks_are_empty() -> Any:
    """What may lie on a failed disk is called deleted (found by seed 1130523766)."""

    def stop_replica(self: Partitions, name: Any, leader_epoch: int, *, delete: bool) -> Any:
        self._deleted.add(name)
        return original(self, name, leader_epoch, delete=delete)

    original = Partitions.stop_replica
    return replaced(Partitions, "stop_replica", stop_replica)


def epochs_outlive_the_cut() -> Any:
    """Epochs whose records were cut off stay in the cache (KAFKA-10706)."""
    return replaced(LeaderEpochs, "truncate_from_end", lambda self, end_offset: None)


def one_batch_remembered() -> Any:
    """Only a producer's last batch is known to be a repetition (KAFKA-5494)."""

    def find(self: Producer, header: Any) -> Any:
        for batch in self.batches[-1:]:
            if (batch.first_sequence, batch.last_sequence) == (header.base_sequence, header.last_sequence):
                return batch
        return None

    return replaced(Producer, "find_duplicate", find)


def batches_not_recalled() -> Any:
    """A snapshot's producers are taken for all there is to know (found by seed 4)."""
    return replaced(producers, "find_written", lambda *_: None)


def recovery_drops_a_batch() -> Any:
    """After a kill the last batch of a log is taken for torn."""
    original = recovery.recover_segment

    def recover(segment: Any, next_base_offset: int | None, interval_bytes: int) -> Any:
        end = original(segment, next_base_offset, interval_bytes)
        headers = list(segment.scan(0))
        if next_base_offset is None and headers:
            segment.cut_at(headers[-1].position)
            return None
        return end

    return replaced(recovery, "recover_segment", recover)


def keys_confused() -> Any:
    """Compaction takes two keys for the same."""
    put, newest = KeyMap.put, KeyMap.newest
    return all_of(
        replaced(KeyMap, "put", lambda self, key, offset: put(self, key[:4], offset)),
        replaced(KeyMap, "newest", lambda self, key: newest(self, key[:4])),
    )


def everything_is_cleaned() -> Any:
    """Compaction believes that every record has a newer one."""
    return replaced(KeyMap, "newest", lambda self, key: 2**60)


def retention_ignores_the_watermark() -> Any:
    """Retention removes what is not committed yet (KAFKA-5634)."""

    def raise_start(self: Log, offset: int) -> bool:
        self.log_start_offset = max(self.log_start_offset, offset)
        return True

    return all_of(
        replaced(retention, "_removable", lambda log, segments: len(segments) - 1),
        replaced(Log, "raise_log_start_offset", raise_start),
    )


def producers_survive_the_cut() -> Any:
    """After a truncation a log remembers batches that it has no more (KAFKA-12520)."""
    original = Log.truncate_to

    def truncate_to(self: Log, offset: int) -> bool:
        remembered = self.producers
        was_cut = original(self, offset)
        if was_cut:
            self._producers = remembered
            remembered.state.end_offset = offset
        return was_cut

    return replaced(Log, "truncate_to", truncate_to)


def lives_on_without_a_disk() -> Any:
    """A broker whose disks are all gone goes on as if nothing were (found by seed 17)."""
    return replaced(Partitions, "_report_failure", lambda self, what: None)


def old_generations_commit() -> Any:
    """A member of a generation that is over may commit."""
    return replaced(Offsets, "_may_commit", staticmethod(lambda group, request: ErrorCode.NONE))


def groups_not_loaded() -> Any:
    """A new coordinator does not read what was committed before (KAFKA-10614)."""
    return replaced(Loading, "_apply", lambda self, view, header: None)


def commits_not_written() -> Any:
    """A coordinator acknowledges commits that it has only in memory."""

    def append(self: CoordinatorHost[Any], number: int, led: Any, append: Any) -> None:
        self.perform(number, led.shard.appended(append.ticket, ErrorCode.NONE, self.now()))

    return replaced(CoordinatorHost, "_append", append)


def everyone_gets_the_same() -> Any:
    """All members are given one member's share."""
    original = Rebalance._store_assignment

    def store(self: Rebalance, turn: Any, group: Any, assignments: dict[str, bytes]) -> None:
        share = max(assignments.values(), key=len, default=b"")
        original(self, turn, group, dict.fromkeys(assignments, share))

    return replaced(Rebalance, "_store_assignment", store)


def generations_begin_anew() -> Any:
    """A coordinator that takes a group over counts its generations from the start."""
    original = CoordinatorHost._loaded

    def loaded(self: CoordinatorHost[Any], number: int, led: Any) -> None:
        original(self, number, led)
        for group in led.shard.groups.values():
            group.generation = 0

    return replaced(CoordinatorHost, "_loaded", loaded)


def shared_without_writing() -> Any:
    """Members get their shares before the assignment is written (KAFKA-10614's other half)."""
    original = Rebalance._store

    def store(self: Rebalance, turn: Any, group: Any, assignments: Any, reason: str, then: Any) -> None:
        original(self, turn, group, assignments, reason, StoreEmptyGroup())
        self._shard.stored.apply([group_record(group, assignments, turn.now.wall_ms)])
        if isinstance(then, StoreAssignment):
            self.assignment_stored(turn, then, ErrorCode.NONE)
        elif isinstance(then, ReplaceStaticMember):
            self.static_member_stored(turn, then, ErrorCode.NONE)

    return replaced(Rebalance, "_store", store)
