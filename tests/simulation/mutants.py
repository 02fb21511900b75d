"""Planted bugs: each breaks one rule of the product while its block runs. A simulation must notice.

``python -m simulation.hunt NAME …`` (from ``tests/``) tells after how many seeds each is found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

from ottla.broker import controller_writes, fences, partition
from ottla.broker.apis import leader_and_isr, stop_replica, update_metadata
from ottla.broker.controller_channel import BrokerChannel
from ottla.broker.controller_host import ControllerHost
from ottla.broker.controller_steps import Fence
from ottla.broker.coordinator_host import CoordinatorHost
from ottla.broker.coordinator_loading import Loading
from ottla.broker.fetching import ParkedFetch
from ottla.broker.gone_topics import GoneTopics
from ottla.broker.isr_sender import IsrSender
from ottla.broker.partitions import Partitions
from ottla.broker.peer_links import LinkLost
from ottla.broker.producer_ids import ProducerIds
from ottla.broker.promises import ParkedProduce, ProducedBatch
from ottla.broker.registration import Registration
from ottla.controller import isr_changes, preferred, reassignment, state_changes
from ottla.controller.request_batch import RequestBatch
from ottla.coordinator.group.offsets import Offsets
from ottla.coordinator.group.rebalance import Rebalance
from ottla.model.errors import ErrorCode
from ottla.model.ids import Offset
from ottla.replication.effects import FollowLeader, HighWatermarkAdvanced, TruncateTo
from ottla.replication.follower import PartitionFollower
from ottla.replication.isr import Isr
from ottla.replication.leader import FollowerProgress, PartitionLeader
from ottla.sim.plan import Plan, TopicKind, TopicShape, draw_plan
from ottla.storage import log as storage_log
from ottla.storage import recovery, retention
from ottla.storage.compaction import KeyMap
from ottla.storage.leader_epochs import LeaderEpochs
from ottla.storage.log import Log
from ottla.storage.producer_state import Producer, ProducerState
from ottla.zookeeper import paths
from ottla.zookeeper.ops import ANY_VERSION, Check


@contextmanager
def _replaced(owner: Any, name: str, mutant: Any) -> Iterator[None]:
    original = owner.__dict__[name]
    setattr(owner, name, mutant)
    try:
        yield
    finally:
        setattr(owner, name, original)


@contextmanager
def _all(*replaced: Any) -> Iterator[None]:
    with ExitStack() as stack:
        for each in replaced:
            stack.enter_context(each)
        yield


# -- replication -----------------------------------------------------------------------------------------


def _truncate_to_watermark() -> Any:
    """A follower cuts its log to its own, lagging high watermark (before KIP-101)."""

    def started(self: PartitionFollower) -> Any:
        if self.log.high_watermark < self.log.end_offset:
            return [TruncateTo(Offset(self.log.high_watermark), "planted")]
        return []

    return _replaced(PartitionFollower, "started", started)


def _never_truncate() -> Any:
    """A follower keeps a tail that its leader does not have."""

    def diverged(self: PartitionFollower, leader: Any, fetch_offset: int) -> Any:
        return []

    return _replaced(PartitionFollower, "_diverged", diverged)


def _watermark_ignores_followers() -> Any:
    """Records are acknowledged as soon as the leader has them."""

    def advance(self: PartitionLeader, now_ms: int, live: Any) -> Any:
        if self.end_offset <= self.high_watermark:
            return ()
        self.high_watermark = self.end_offset
        return [HighWatermarkAdvanced(self.end_offset)]

    return _replaced(PartitionLeader, "_try_to_advance", advance)


def _watermark_ignores_pending_isr() -> Any:
    """The watermark does not wait for a member that is just being taken in (KAFKA-8836)."""

    def propose(self: Isr, change: int, isr: Any) -> None:
        original_propose(self, change, isr)
        self.maximal = frozenset(isr) & frozenset(self.committed)

    original_propose = Isr.propose
    return _replaced(Isr, "propose", propose)


def _old_words_count() -> Any:
    """A leader elected again counts what its followers said in its last epoch (found by seed 525303934)."""

    def in_new_epoch(self: FollowerProgress, in_isr: bool, now_ms: int) -> FollowerProgress:
        progress = original(self, in_isr, now_ms)
        progress.end_offset = self.end_offset
        return progress

    original = FollowerProgress.in_new_epoch
    return _replaced(FollowerProgress, "in_new_epoch", in_new_epoch)


def _min_isr_ignored() -> Any:
    """acks=all is taken with one replica in sync."""
    return _replaced(PartitionLeader, "effective_min_isr", property(lambda self: 1))


def _anyone_joins_the_isr() -> Any:
    """A follower joins the ISR wherever it stands."""

    def expand(self: PartitionLeader, follower: Any, progress: Any, live: Any) -> Any:
        if self.isr.pending is not None or follower in self.isr.maximal or follower not in live:
            return ()
        return [self._begin_change((*self.isr.committed, follower), "planted")]

    return _replaced(PartitionLeader, "_try_to_expand", expand)


def _lag_is_forgiven() -> Any:
    """A leader never drops a dead follower from the ISR."""
    return _replaced(PartitionLeader, "_lags", lambda self, broker, now_ms: False)


def _no_fetch_fence() -> Any:
    """A leader answers fetches of any leader epoch (before KIP-320)."""
    return _replaced(partition, "check_leader_epoch", lambda requested, own: 0)


def _no_leader_epoch_fence() -> Any:
    """A broker obeys LeaderAndIsr of older epochs."""

    def judge(self: Partitions, assigned: Any, partition: Any, own_epoch: int) -> Any:
        return None

    return _replaced(Partitions, "_judge_same_epoch", judge)


def _no_controller_epoch_fence() -> Any:
    """A broker obeys a controller that was replaced."""

    def fence(node: Any, controller_epoch: int, broker_epoch: int, is_kraft: bool) -> ErrorCode:
        return ErrorCode.NONE

    return _all(
        _replaced(leader_and_isr, "fence", fence),
        _replaced(update_metadata, "fence", fence),
        _replaced(stop_replica, "fence", fence),
    )


def _unclean_always() -> Any:
    """Any live replica may lead, in sync or not."""
    original = state_changes.elect_for_offline_partition

    def elect(assignment: Any, current: Any, online: Any, *, unclean_allowed: bool = False) -> Any:
        return original(assignment, current, online, unclean_allowed=True)

    return _replaced(state_changes, "elect_for_offline_partition", elect)


def _isr_of_strangers() -> Any:
    """The controller takes ISR changes of older partition epochs."""
    original = isr_changes.judge

    def judge(context: Any, event: Any, change: Any) -> Any:
        verdict = original(context, event, change)
        if verdict in (ErrorCode.INELIGIBLE_REPLICA, ErrorCode.INVALID_UPDATE_VERSION):
            return None
        return verdict

    return _replaced(isr_changes, "judge", judge)


def _retries_are_new() -> Any:
    """A repeated batch of an idempotent producer is written again."""
    return _all(
        _replaced(ProducerState, "find_duplicate", lambda self, header: None),
        _replaced(ProducerState, "refuse_batch", lambda self, header, origin: 0),
    )


def _epochs_forgotten() -> Any:
    """A new leader does not note where its epoch starts (KAFKA-7415)."""
    return _replaced(LeaderEpochs, "assign", lambda self, *arguments: False)


def _lost_requests_stay_lost() -> Any:
    """The controller does not repeat what a broker did not hear (KAFKA-1187)."""

    def answered(self: BrokerChannel, response: Any) -> None:
        original(self, response if type(response).__name__ != "LinkLost" else _Nothing())

    original = BrokerChannel._answered
    return _replaced(BrokerChannel, "_answered", answered)


class _Nothing:
    error_code = 0
    topics: tuple[Any, ...] = ()
    partition_errors: tuple[Any, ...] = ()


def _gone_topics_stay() -> Any:
    """A broker that registers again shows topics that were deleted meanwhile (found by seed 1946504082)."""
    return _replaced(GoneTopics, "on_update", lambda self, broker_epoch, update: None)


def _removed_replicas_stay() -> Any:
    """A leader that missed its removal leads on (found by seeds 1130523223 and 1130523445)."""
    return _replaced(Partitions, "_leave_if_removed", lambda self, name: None)


def _dead_disks_are_empty() -> Any:
    """What may lie on a failed disk is called deleted (found by seed 1130523766)."""

    def stop_replica(self: Partitions, name: Any, leader_epoch: int, *, delete: bool) -> Any:
        self._deleted.add(name)
        return original(self, name, leader_epoch, delete=delete)

    original = Partitions.stop_replica
    return _replaced(Partitions, "stop_replica", stop_replica)


def _never_registers_again() -> Any:
    """After its session ended a broker lives on without a registration (KAFKA-5473)."""
    return _replaced(Registration, "register_again", lambda self, then: None)


def _never_stands_again() -> Any:
    """Nobody takes the office after the controller is gone."""
    return _replaced(ControllerHost, "_on_controller_node", lambda self, event: None)


def _joins_before_its_epoch() -> Any:
    """A follower joins the ISR at the watermark, before it has this epoch's start (KAFKA-7128)."""

    def expand(self: PartitionLeader, follower: Any, progress: Any, live: Any) -> Any:
        if self.isr.pending is not None or follower in self.isr.maximal or follower not in live:
            return ()
        if progress.end_offset < self.high_watermark:
            return ()
        return [self._begin_change((*self.isr.committed, follower), "planted")]

    return _replaced(PartitionLeader, "_try_to_expand", expand)


def _acknowledged_at_once() -> Any:
    """acks=all is answered when the leader has written, before anybody followed."""
    return _replaced(ParkedProduce, "wait_for", lambda self, *arguments: None)


def _deposed_leader_acknowledges() -> Any:
    """A leader that lost its office tells waiting producers that all is well."""
    original = ProducedBatch.settled

    def settled(self: ProducedBatch, error_code: int) -> None:
        original(self, 0 if error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER else error_code)

    return _replaced(ProducedBatch, "settled", settled)


def _follower_watermark_unbounded() -> Any:
    """A follower takes its leader's watermark although its own log ends before it."""

    def appended(self: PartitionFollower, answer: Any) -> Any:
        self.leader_high_watermark = answer.high_watermark
        return [FollowLeader(Offset(answer.high_watermark), Offset(answer.log_start_offset))]

    return _replaced(PartitionFollower, "appended", appended)


def _epochs_outlive_the_cut() -> Any:
    """Epochs whose records were cut off stay in the cache (KAFKA-10706)."""
    return _replaced(LeaderEpochs, "truncate_from_end", lambda self, end_offset: None)


def _diverging_fetch_counts() -> Any:
    """A leader counts a follower's wrong tail as its own records (KAFKA-13141)."""
    original = ParkedFetch._is_at_home

    def at_home(self: ParkedFetch, partition: Any, entry: Any) -> bool:
        if self.reader.replica_id >= 0 and partition.leader is not None:
            partition.follower_fetched(entry, self.reader.last_fetch_ms)
        return original(self, partition, entry)

    return _replaced(ParkedFetch, "_is_at_home", at_home)


def _uncommitted_is_served() -> Any:
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

    return _replaced(ParkedFetch, "_read_log", read)


def _end_told_too_early() -> Any:
    """A new leader tells the end of a partition before its watermark has reached its epoch (KIP-207)."""
    return _replaced(PartitionLeader, "may_tell_latest_offset", lambda self: True)


def _lost_isr_answer() -> Any:
    """A leader waits for ever for an answer to its ISR change that was lost (KAFKA-14144)."""
    original = IsrSender._answered

    def answered(self: IsrSender, controller: Any, answer: Any) -> None:
        if isinstance(answer, LinkLost):
            self._in_flight = None
        else:
            original(self, controller, answer)

    return _replaced(IsrSender, "_answered", answered)


# -- the controller --------------------------------------------------------------------------------------


def _no_fence_in_zookeeper() -> Any:
    """A controller's writes do not ask whether another was elected (KAFKA-6082)."""
    return _replaced(Fence, "check", property(lambda self: Check("/brokers", ANY_VERSION)))


def _unknown_while_reading() -> Any:
    """A controller calls topics unknown that it has not read yet (found by seed 70)."""
    return _replaced(ControllerHost, "is_serving", property(lambda self: self._term is not None))


def _moves_end_early() -> Any:
    """A reassignment ends before its new replicas are in sync."""
    return _replaced(reassignment, "_is_in_sync", lambda partition: partition.state is not None)


def _preferred_whatever_the_isr() -> Any:
    """The preferred replica is elected although it is not in sync."""
    original = preferred.elect_preferred_replica

    def elect(assignment: Any, current: Any, online: Any) -> Any:
        everyone = current.isr + tuple(r for r in assignment.replicas if r not in current.isr)
        return original(assignment, current._replace(isr=everyone), online)

    return _replaced(preferred, "elect_preferred_replica", elect)


def _isr_of_the_dead() -> Any:
    """The controller takes brokers into an ISR that are gone, or have lived again since (KIP-841)."""
    return _replaced(isr_changes, "_why_unsound", lambda *arguments: ErrorCode.NONE)


def _nobody_is_told() -> Any:
    """Brokers are not told what changed."""
    return _replaced(RequestBatch, "update_metadata", lambda self, partitions=(): None)


def _deleted_logs_stay() -> Any:
    """StopReplica with delete stops a replica and leaves its log (KAFKA-9946)."""
    original = Partitions.stop_replica

    def stop(self: Partitions, name: Any, leader_epoch: int, *, delete: bool) -> Any:
        return original(self, name, leader_epoch, delete=False)

    return _replaced(Partitions, "stop_replica", stop)


def _stale_lives_obeyed() -> Any:
    """A broker obeys what was meant for its life before (KAFKA-7235)."""
    return _replaced(fences, "is_broker_epoch_stale", lambda node, broker_epoch: False)


def _producer_ids_given_twice() -> Any:
    """Every broker hands out the same producer ids."""
    original = ProducerIds._answered

    def answered(self: ProducerIds, response: Any) -> None:
        if not isinstance(response, LinkLost):
            response.producer_id_start = 0
        original(self, response)

    return _replaced(ProducerIds, "_answered", answered)


def _versions_unchecked() -> Any:
    """States of partitions are written over whatever stands there (KAFKA-2729 the other way round)."""
    original = controller_writes.SetData

    def set_data(path: str, data: Any, version: int) -> Any:
        return original(path, data, ANY_VERSION if path.startswith(paths.TOPICS) else version)

    return _replaced(controller_writes, "SetData", set_data)


# -- logs ------------------------------------------------------------------------------------------------


def _one_batch_remembered() -> Any:
    """Only a producer's last batch is known to be a repetition (KAFKA-5494)."""

    def find(self: Producer, header: Any) -> Any:
        for batch in self.batches[-1:]:
            if (batch.first_sequence, batch.last_sequence) == (header.base_sequence, header.last_sequence):
                return batch
        return None

    return _replaced(Producer, "find_duplicate", find)


def _batches_not_recalled() -> Any:
    """A snapshot's producers are taken for all there is to know (found by seed 4)."""

    def recall(producer: Producer, producer_id: int, segments: Any) -> None:
        producer.is_recalled = True

    return _replaced(storage_log, "recall_batches", recall)


def _recovery_drops_a_batch() -> Any:
    """After a kill the last batch of a log is taken for torn."""
    original = recovery.recover_segment

    def recover(segment: Any, next_base_offset: int | None, interval_bytes: int) -> Any:
        end = original(segment, next_base_offset, interval_bytes)
        headers = list(segment.scan(0))
        if next_base_offset is None and headers:
            segment.cut_at(headers[-1].position)
            return None
        return end

    return _replaced(recovery, "recover_segment", recover)


def _keys_confused() -> Any:
    """Compaction takes two keys for the same."""
    put, newest = KeyMap.put, KeyMap.newest
    return _all(
        _replaced(KeyMap, "put", lambda self, key, offset: put(self, key[:4], offset)),
        _replaced(KeyMap, "newest", lambda self, key: newest(self, key[:4])),
    )


def _everything_is_cleaned() -> Any:
    """Compaction believes that every record has a newer one."""
    return _replaced(KeyMap, "newest", lambda self, key: 2**60)


def _retention_ignores_the_watermark() -> Any:
    """Retention removes what is not committed yet (KAFKA-5634)."""

    def raise_start(self: Log, offset: int) -> bool:
        self.log_start_offset = max(self.log_start_offset, offset)
        return True

    return _all(
        _replaced(retention, "_removable", lambda log, segments: len(segments) - 1),
        _replaced(Log, "raise_log_start_offset", raise_start),
    )


def _producers_survive_the_cut() -> Any:
    """After a truncation a log remembers batches that it has no more (KAFKA-12520)."""
    original = storage_log.rebuild_producers

    def rebuild(home: Any, segments: Any, start: int, end: int, was_clean: bool) -> Any:
        state = original(home, segments, start, end, was_clean)
        for producer in state.producers.values():
            producer.batches = ()
        return state

    return _replaced(storage_log, "rebuild_producers", rebuild)


def _lives_on_without_a_disk() -> Any:
    """A broker whose disks are all gone goes on as if nothing were (found by seed 17)."""
    return _replaced(Partitions, "_report_failure", lambda self, what: None)


# -- groups ----------------------------------------------------------------------------------------------


def _old_generations_commit() -> Any:
    """A member of a generation that is over may commit."""
    return _replaced(Offsets, "_may_commit", staticmethod(lambda group, request: ErrorCode.NONE))


def _groups_not_loaded() -> Any:
    """A new coordinator does not read what was committed before (KAFKA-10614)."""
    return _replaced(Loading, "_apply", lambda self, view, header: None)


def _commits_not_written() -> Any:
    """A coordinator acknowledges commits that it has only in memory."""

    def append(self: CoordinatorHost, number: int, shard: Any, write: Any) -> None:
        self.perform(number, shard.core.appended(write.ticket, ErrorCode.NONE, self.now()))

    return _replaced(CoordinatorHost, "_append", append)


def _everyone_gets_the_same() -> Any:
    """All members are given one member's share."""
    original = Rebalance._store_assignment

    def store(self: Rebalance, turn: Any, group: Any, assignments: dict[str, bytes]) -> None:
        share = max(assignments.values(), key=len, default=b"")
        original(self, turn, group, dict.fromkeys(assignments, share))

    return _replaced(Rebalance, "_store_assignment", store)


def _generations_begin_anew() -> Any:
    """A coordinator that takes a group over counts its generations from the start."""
    original = CoordinatorHost._loaded

    def loaded(self: CoordinatorHost, partition: Any, shard: Any, loader: Any) -> None:
        original(self, partition, shard, loader)
        for group in shard.core.groups.values():
            group.generation = 0

    return _replaced(CoordinatorHost, "_loaded", loaded)


def _shared_without_writing() -> Any:
    """Members get their shares before the assignment is written (KAFKA-10614's other half)."""
    original = Rebalance._store

    def store(self: Rebalance, turn: Any, group: Any, assignments: Any, reason: str, settle: Any) -> None:
        original(self, turn, group, assignments, reason, lambda later, error: None)
        settle(turn, ErrorCode.NONE)

    return _replaced(Rebalance, "_store", store)


# -- how each is looked for ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Steer:
    """Which faults and which workload bring a bug to light soonest; empty: whatever the seed draws."""

    kinds: tuple[str, ...] = ()
    shape: tuple[tuple[str, Any], ...] = ()
    seconds: int = 30
    a_minute: int | None = None

    def plan(self, seed: int, kinds: tuple[str, ...]) -> Plan:
        plan = draw_plan(seed, self.kinds or kinds, self.seconds, self.a_minute)
        return replace(plan, shape=replace(plan.shape, **dict(self.shape)))


KILLS = ("kill", "kill all", "kill leader", "pause", "shut down")
CUTS = ("cut brokers", "cut from zookeeper", "cut one way", "kill leader", "pause", "slow link")
OFFICE = ("drop controller", "kill controller", "pause controller", "slow zookeeper", "split zookeeper")
PLAIN = TopicShape("topic-0", TopicKind.PLAIN, 2, {"retention.ms": "-1"})
SIMPLE = (("topics", (PLAIN,)), ("members", 0), ("churns", False), ("careless_producers", 0))
GROUP = (("topics", (PLAIN,)), ("members", 3), ("churns", False))
CHURN = (("topics", (PLAIN,)), ("members", 0), ("churns", True))
COMPACTED = TopicShape(
    "compacted-0",
    TopicKind.COMPACTED,
    1,
    {"cleanup.policy": "compact", "segment.bytes": "1024", "min.cleanable.dirty.ratio": "0.05"},
)
RETAINED = TopicShape("retained-0", TopicKind.RETAINED, 1, {"segment.bytes": "512", "retention.bytes": "600"})
CLEANED = (("topics", (PLAIN, COMPACTED)), ("members", 0), ("churns", False))
SHORT_LIVED = (("topics", (PLAIN, RETAINED)), ("members", 0), ("churns", False))
SMALL_SEGMENTS = (
    "settings",
    {"log.segment.bytes": "1024", "replica.lag.time.max.ms": "1500", "zookeeper.session.timeout.ms": "1000"},
)
MOVING = (("brokers", 5), *SIMPLE)

STEERED: dict[str, Steer] = {
    **dict.fromkeys(
        (
            "truncate_to_watermark",
            "never_truncate",
            "unclean_always",
            "deposed_leader_acknowledges",
            "recovery_drops_a_batch",
            "retries_are_new",
            "acknowledged_at_once",
            "watermark_ignores_followers",
            "epochs_forgotten",
            "epochs_outlive_the_cut",
            "producers_survive_the_cut",
        ),
        Steer(KILLS, SIMPLE, a_minute=60),
    ),
    **dict.fromkeys(
        (
            "anyone_joins_the_isr",
            "joins_before_its_epoch",
            "watermark_ignores_pending_isr",
            "no_fetch_fence",
            "no_leader_epoch_fence",
            "diverging_fetch_counts",
            "follower_watermark_unbounded",
            "lost_isr_answer",
            "isr_of_the_dead",
            "isr_of_strangers",
            "old_words_count",
            "lag_is_forgiven",
        ),
        Steer((*CUTS, "reset connections", "kill all"), SIMPLE, a_minute=60),
    ),
    **dict.fromkeys(
        (
            "no_controller_epoch_fence",
            "never_stands_again",
            "unknown_while_reading",
            "versions_unchecked",
            "stale_lives_obeyed",
            "lost_requests_stay_lost",
        ),
        Steer((*OFFICE, "kill", "pause", "expire session"), SIMPLE, a_minute=60),
    ),
    **dict.fromkeys(
        (
            "old_generations_commit",
            "groups_not_loaded",
            "commits_not_written",
            "everyone_gets_the_same",
            "generations_begin_anew",
            "shared_without_writing",
        ),
        Steer((*KILLS, "member hangs", "member leaves", "elect preferred"), GROUP, a_minute=40),
    ),
    **dict.fromkeys(
        ("keys_confused", "everything_is_cleaned"),
        Steer(("kill", "look around", "pause", "reset connections"), CLEANED, a_minute=80),
    ),
    "no_fence_in_zookeeper": Steer(("drop controller", "kill", "slow zookeeper"), SIMPLE, a_minute=150),
    "deleted_logs_stay": Steer(("kill", "look around", "pause", "reset connections"), CHURN),
    "moves_end_early": Steer(("reassign", "kill", "pause", "look around"), MOVING, a_minute=60),
    "preferred_whatever_the_isr": Steer(("elect preferred", *KILLS), SIMPLE, a_minute=60),
    "end_told_too_early": Steer(("look around", "kill leader", "pause", "cut brokers"), SIMPLE, a_minute=120),
    "retention_ignores_the_watermark": Steer((*CUTS, "reset connections"), SHORT_LIVED, a_minute=80),
    "one_batch_remembered": Steer((*KILLS, "reset connections"), SIMPLE, a_minute=80),
    "batches_not_recalled": Steer((*KILLS, "reset connections"), (*SIMPLE, SMALL_SEGMENTS), a_minute=80),
    "lives_on_without_a_disk": Steer(("disk error", "disk full", "expire session"), SIMPLE),
    "gone_topics_stay": Steer(
        ("cut from zookeeper", "split zookeeper", "pause", "expire session"), CHURN, a_minute=20
    ),
    "removed_replicas_stay": Steer(
        ("reassign", "pause", "kill controller in mid-turn", "cut from zookeeper"), MOVING, a_minute=60
    ),
    "dead_disks_are_empty": Steer(
        ("disk error", "kill", "kill leader"), (*CHURN, ("directories", 2)), a_minute=80
    ),
    "never_registers_again": Steer(("expire session", "cut from zookeeper"), SIMPLE),
}
"""Where a bug is looked for; elsewhere the whole swarm is."""

MUTANTS: dict[str, Callable[[], Any]] = {
    plant.__name__.lstrip("_"): plant
    for plant in (
        _truncate_to_watermark,
        _never_truncate,
        _watermark_ignores_followers,
        _min_isr_ignored,
        _old_words_count,
        _anyone_joins_the_isr,
        _lag_is_forgiven,
        _no_leader_epoch_fence,
        _unclean_always,
        _isr_of_strangers,
        _retries_are_new,
        _epochs_forgotten,
        _lost_requests_stay_lost,
        _never_registers_again,
        _gone_topics_stay,
        _removed_replicas_stay,
        _dead_disks_are_empty,
        _joins_before_its_epoch,
        _acknowledged_at_once,
        _deposed_leader_acknowledges,
        _follower_watermark_unbounded,
        _uncommitted_is_served,
        _unknown_while_reading,
        _moves_end_early,
        _preferred_whatever_the_isr,
        _isr_of_the_dead,
        _nobody_is_told,
        _deleted_logs_stay,
        _producer_ids_given_twice,
        _one_batch_remembered,
        _batches_not_recalled,
        _recovery_drops_a_batch,
        _keys_confused,
        _everything_is_cleaned,
        _lives_on_without_a_disk,
        _old_generations_commit,
        _groups_not_loaded,
        _commits_not_written,
        _everyone_gets_the_same,
        _generations_begin_anew,
        _shared_without_writing,
    )
}
"""Bugs that were found, by seeds or by scenarios: `docs/mutants.md` says by which."""

CANDIDATES: dict[str, Callable[[], Any]] = {
    plant.__name__.lstrip("_"): plant
    for plant in (
        _no_fetch_fence,
        _no_controller_epoch_fence,
        _watermark_ignores_pending_isr,
        _never_stands_again,
        _epochs_outlive_the_cut,
        _diverging_fetch_counts,
        _end_told_too_early,
        _lost_isr_answer,
        _no_fence_in_zookeeper,
        _stale_lives_obeyed,
        _versions_unchecked,
        _retention_ignores_the_watermark,
        _producers_survive_the_cut,
    )
}
"""Bugs that nobody has found yet, for lack of seeds or of a check."""
