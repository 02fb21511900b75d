"""Planted bugs of leaders and followers, and of what clients are told."""

from __future__ import annotations

from typing import Any

from ottla.broker.clients.commit_waits import ParkedProduce, ProducedBatch
from ottla.broker.clients.parked_fetch import ParkedFetch
from ottla.broker.peers.links import LinkLost
from ottla.broker.replicas import partition
from ottla.broker.replicas.assignment import Assignment
from ottla.broker.replicas.following.fetchers import Fetchers
from ottla.broker.replicas.isr_proposals import IsrProposals
from ottla.broker.replicas.partition import Partition
from ottla.broker.replicas.producer_order import ProducerOrder
from ottla.model.errors import ErrorCode
from ottla.model.ids import Offset
from ottla.replication import fetch_checks
from ottla.replication.effects import FollowLeader, HighWatermarkAdvanced, TruncateTo
from ottla.replication.fetch_plan import FetchPlan
from ottla.replication.follower import PartitionFollower
from ottla.replication.isr import Isr
from ottla.replication.leader import FollowerProgress, PartitionLeader
from ottla.storage.log.log import Log
from simulation.planting import all_of, replaced


def truncate_to_watermark() -> Any:
    """A follower cuts its log to its own, lagging high watermark (before KIP-101)."""

    def started(self: PartitionFollower) -> Any:
        if self.log.high_watermark < self.log.end_offset:
            return [TruncateTo(Offset(self.log.high_watermark), "planted")]
        return []

    return replaced(PartitionFollower, "started", started)


def never_truncate() -> Any:
    """A follower keeps a tail that its leader does not have."""

    def diverged(self: PartitionFollower, leader: Any, fetch_offset: int) -> Any:
        return []

    return replaced(PartitionFollower, "_diverged", diverged)


def watermark_ignores_followers() -> Any:
    """Records are acknowledged as soon as the leader has them."""

    def advance(self: PartitionLeader, now_ms: int, live: Any) -> Any:
        if self.end_offset <= self.high_watermark:
            return ()
        self.high_watermark = self.end_offset
        return [HighWatermarkAdvanced(self.end_offset)]

    return replaced(PartitionLeader, "_try_to_advance", advance)


def watermark_ignores_pending_isr() -> Any:
    """The watermark does not wait for a member that is just being taken in (KAFKA-8836)."""

    def propose(self: Isr, change: int, isr: Any) -> None:
        original_propose(self, change, isr)
        self.maximal = frozenset(isr) & frozenset(self.committed)

    original_propose = Isr.propose
    return replaced(Isr, "propose", propose)


def old_words_count() -> Any:
    """A leader elected again counts what its followers said in its last epoch (found by seed 525303934)."""

    def in_new_epoch(self: FollowerProgress, in_isr: bool, now_ms: int) -> FollowerProgress:
        progress = original(self, in_isr, now_ms)
        progress.end_offset = self.end_offset
        return progress

    original = FollowerProgress.in_new_epoch
    return replaced(FollowerProgress, "in_new_epoch", in_new_epoch)


def min_isr_ignored() -> Any:
    """acks=all is taken with one replica in sync."""
    return replaced(PartitionLeader, "effective_min_isr", property(lambda self: 1))


def anyone_joins_the_isr() -> Any:
    """A follower joins the ISR wherever it stands."""

    def expand(self: PartitionLeader, follower: Any, progress: Any, live: Any) -> Any:
        if self.isr.pending is not None or follower in self.isr.maximal or follower not in live:
            return ()
        return [self._begin_change((*self.isr.committed, follower), f"caught up={follower}")]

    return replaced(PartitionLeader, "_try_to_expand", expand)


def lag_is_forgiven() -> Any:
    """A leader never drops a dead follower from the ISR."""
    return replaced(PartitionLeader, "_lags", lambda self, broker, now_ms: False)


def no_fetch_fence() -> Any:
    """A leader answers fetches of any leader epoch (before KIP-320)."""

    def check(requested: int, own: int) -> int:
        return 0

    return all_of(
        replaced(fetch_checks, "check_leader_epoch", check), replaced(partition, "check_leader_epoch", check)
    )


def no_epochs_between_replicas() -> Any:
    """The same, and a follower takes records of epochs that it has not heard of (before Kafka 3.9.1)."""
    original = Log.append_as_follower

    def append(self: Log, records: Any, *, now_ms: int, leader_epoch: int | None = None) -> Any:
        return original(self, records, now_ms=now_ms)

    return all_of(no_fetch_fence(), replaced(Log, "append_as_follower", append))


def no_leader_epoch_fence() -> Any:
    """A broker obeys LeaderAndIsr of older epochs."""

    def judge(self: Assignment, assigned: Any, partition: Any, own_epoch: int) -> Any:
        return None

    return replaced(Assignment, "_judge_same_epoch", judge)


def joins_before_its_epoch() -> Any:
    """A follower joins the ISR at the watermark, before it has this epoch's start (KAFKA-7128)."""

    def expand(self: PartitionLeader, follower: Any, progress: Any, live: Any) -> Any:
        if self.isr.pending is not None or follower in self.isr.maximal or follower not in live:
            return ()
        if progress.end_offset < self.high_watermark:
            return ()
        return [self._begin_change((*self.isr.committed, follower), f"caught up={follower}")]

    return replaced(PartitionLeader, "_try_to_expand", expand)


def acknowledged_at_once() -> Any:
    """acks=all is answered when the leader has written, before anybody followed."""
    return replaced(ParkedProduce, "wait_for", lambda self, *arguments: None)


def deposed_leader_acknowledges() -> Any:
    """A leader that lost its office tells waiting producers that all is well."""
    original = ProducedBatch.settled

    def settled(self: ProducedBatch, error_code: int) -> None:
        original(self, 0 if error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER else error_code)

    return replaced(ProducedBatch, "settled", settled)


def follower_watermark_unbounded() -> Any:
    """A follower takes its leader's watermark although its own log ends before it."""

    def appended(self: PartitionFollower, answer: Any) -> Any:
        self.leader_high_watermark = answer.high_watermark
        return [FollowLeader(Offset(answer.high_watermark), Offset(answer.log_start_offset))]

    return replaced(PartitionFollower, "appended", appended)


def diverging_fetch_counts() -> Any:
    """A leader counts a follower's wrong tail as its own records (KAFKA-13141)."""
    original = ParkedFetch._is_at_home

    def at_home(self: ParkedFetch, partition: Any, entry: Any) -> bool:
        if self.reader.replica_id >= 0 and partition.leader is not None:
            partition.follower_fetched(entry, self.reader.last_fetch_ms)
        return original(self, partition, entry)

    return replaced(ParkedFetch, "_is_at_home", at_home)


def uncommitted_is_served() -> Any:
    """Consumers read up to the end of the log."""
    original = ParkedFetch._read_log

    def read(self: ParkedFetch, entry: Any, partition: Any, left: int, min_one_batch: bool) -> None:
        if self.reader.replica_id >= 0 or entry.fetch_offset >= partition.log.end_offset:
            original(self, entry, partition, left, min_one_batch)
            return
        entry.has_more = True
        entry.records = partition.log.read(
            entry.fetch_offset, entry.max_bytes, partition.log.end_offset, min_one_batch
        )

    return replaced(ParkedFetch, "_read_log", read)


def end_told_too_early() -> Any:
    """A new leader tells the end of a partition before its watermark has reached its epoch (KIP-207)."""
    return replaced(PartitionLeader, "may_tell_latest_offset", lambda self: True)


def lost_isr_answer() -> Any:
    """A leader waits for ever for an answer to its ISR change that was lost (KAFKA-14144)."""
    original = IsrProposals._answered

    def answered(self: IsrProposals, controller: Any, answer: Any) -> None:
        if isinstance(answer, LinkLost):
            self._in_flight = None
        else:
            original(self, controller, answer)

    return replaced(IsrProposals, "_answered", answered)


def first_batches_not_awaited() -> Any:
    """A new leader takes a producer's second batch, though the first was refused before it led."""
    return replaced(ProducerOrder, "comes_too_early", lambda self, partition, header: None)


def lost_fetches_were_heard() -> Any:
    """A follower whose connection broke goes on as if its leader had heard the last request."""
    return replaced(FetchPlan, "connection_lost", lambda self: None)


def two_leaders_at_once() -> Any:
    """A follower that is told of another leader goes on asking the one before, too."""

    def follow(self: Fetchers, partition: Any) -> None:
        self._of_partition.pop(partition.name, None)
        original(self, partition)

    original = Fetchers.follow
    return replaced(Fetchers, "follow", follow)


def refused_once_and_for_all() -> Any:
    """A follower whose place in the ISR was refused is not looked at again before something is written."""

    def answered(self: Partition, answer: Any) -> None:
        quiet = [entry for entry in self.watchers if entry not in entry.reader.dirty]
        original(self, answer)
        for entry in quiet:
            entry.reader.dirty.pop(entry, None)

    original = Partition.isr_change_answered
    return replaced(Partition, "isr_change_answered", answered)
