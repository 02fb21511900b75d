"""A partition's leader: how far the high watermark is, and who is in sync.

A fetch *from* an offset says that the follower holds all before it; that is the whole
acknowledgement. Everything here follows from those fetches, the clock and the controller's answers.
"""

from collections.abc import Sequence, Set

from ottla.model.errors import ErrorCode
from ottla.model.ids import BrokerId, LeaderEpoch, Offset
from ottla.replication.effects import AssignEpoch, HighWatermarkAdvanced, IsrMember, LeaderEffect, ProposeIsr
from ottla.replication.events import Elected, IsrChangeAnswered
from ottla.replication.isr import Isr, IsrAnswer, judge_answer

NEVER_MS = -(2**62)
UNKNOWN = -1
_NOTHING: tuple[LeaderEffect, ...] = ()


class FollowerProgress:
    """What one follower has told its leader, and when."""

    __slots__ = (
        "broker_epoch",
        "end_offset",
        "last_caught_up_ms",
        "last_fetch_leader_end_offset",
        "last_fetch_ms",
        "log_start_offset",
    )

    def __init__(self, last_caught_up_ms: int) -> None:
        self.end_offset = UNKNOWN
        self.log_start_offset = UNKNOWN
        self.last_fetch_leader_end_offset = UNKNOWN
        self.last_fetch_ms = NEVER_MS
        self.last_caught_up_ms = last_caught_up_ms
        self.broker_epoch = UNKNOWN

    def is_caught_up(self, leader_end_offset: int, now_ms: int, lag_time_max_ms: int) -> bool:
        """At the leader's end now, or not longer ago than the allowed lag."""
        return self.end_offset == leader_end_offset or now_ms - self.last_caught_up_ms <= lag_time_max_ms

    def fetched(self, at: int, log_start_offset: int, leader_end_offset: int, now_ms: int) -> None:
        """Note a fetch. A follower that now asks for what was the end at its last fetch was
        caught up when it made that fetch."""
        if at >= leader_end_offset:
            self.last_caught_up_ms = max(self.last_caught_up_ms, now_ms)
        elif at >= self.last_fetch_leader_end_offset:
            self.last_caught_up_ms = max(self.last_caught_up_ms, self.last_fetch_ms)
        self.end_offset = at
        self.log_start_offset = log_start_offset
        self.last_fetch_leader_end_offset = max(leader_end_offset, self.last_fetch_leader_end_offset)
        self.last_fetch_ms = now_ms

    def in_new_epoch(self, in_isr: bool, now_ms: int) -> "FollowerProgress":
        """Forget what was said in an older epoch, except the broker epoch.

        Another broker may have led in between without our knowing, and the follower may have truncated
        its log for that leader.
        """
        progress = FollowerProgress(now_ms if in_isr else NEVER_MS)
        progress.broker_epoch = self.broker_epoch
        return progress


class PartitionLeader:
    """The leader's side of one partition, from its first election to the loss of its role."""

    __slots__ = (
        "_change",
        "adding",
        "broker",
        "end_offset",
        "epoch_start_offset",
        "followers",
        "high_watermark",
        "isr",
        "lag_time_max_ms",
        "leader_epoch",
        "min_insync_replicas",
        "partition_epoch",
        "removing",
        "replicas",
    )

    def __init__(self, broker: BrokerId, *, min_insync_replicas: int, lag_time_max_ms: int) -> None:
        self.broker = broker
        self.min_insync_replicas = min_insync_replicas
        self.lag_time_max_ms = lag_time_max_ms
        self.leader_epoch = LeaderEpoch(-1)
        self.partition_epoch = -1
        self.replicas: tuple[BrokerId, ...] = ()
        self.adding: tuple[BrokerId, ...] = ()
        self.removing: tuple[BrokerId, ...] = ()
        self.isr = Isr(())
        self.followers: dict[BrokerId, FollowerProgress] = {}
        self.end_offset = Offset(0)
        self.high_watermark = Offset(0)
        self.epoch_start_offset = Offset(0)
        self._change = 0

    # --- what the controller says -------------------------------------------------------------

    def elected(self, election: Elected, now_ms: int, live: Set[BrokerId]) -> Sequence[LeaderEffect]:
        """Take the leadership, or a newer epoch of it; a pending ISR change is forgotten.

        The new epoch's start is noted even with no record written in it: only so can it answer
        followers that ask where an older epoch ended (KAFKA-7415).
        """
        assert election.leader_epoch > self.leader_epoch, "epochs only grow"
        in_isr = frozenset(election.isr)
        unknown = FollowerProgress(NEVER_MS)
        self.followers = {
            broker: self.followers.get(broker, unknown).in_new_epoch(broker in in_isr, now_ms)
            for broker in election.replicas
            if broker != self.broker
        }
        self.replicas = election.replicas
        self.adding, self.removing = election.adding, election.removing
        self.isr = Isr(election.isr)
        self.leader_epoch = election.leader_epoch
        self.partition_epoch = election.partition_epoch
        self.end_offset = self.epoch_start_offset = election.end_offset
        self.high_watermark = election.high_watermark
        assigned = AssignEpoch(election.leader_epoch, election.end_offset)
        return [assigned, *self._try_to_advance(now_ms, live)]

    def isr_change_answered(
        self, answer: IsrChangeAnswered, now_ms: int, live: Set[BrokerId]
    ) -> Sequence[LeaderEffect]:
        """Hear what became of a proposed ISR."""
        match judge_answer(answer, self.isr.pending, self.leader_epoch, self.partition_epoch):
            case IsrAnswer.COMMIT:
                self.partition_epoch = answer.partition_epoch
                self.isr.commit(answer.isr)
                return self._try_to_advance(now_ms, live)
            case IsrAnswer.ROLL_BACK:
                self.isr.roll_back()
                return self._try_to_advance(now_ms, live)
            case IsrAnswer.RESUBMIT:
                assert self.isr.pending is not None, "only a pending change is resubmitted"
                return [self._proposal(self.isr.pending.isr, "resubmitted")]
        return _NOTHING

    def reconsider(self, now_ms: int, live: Set[BrokerId]) -> Sequence[LeaderEffect]:
        """Time passed, or brokers died: the high watermark need not wait any more for a follower that was
        about to join, and no fetch will tell us so (KAFKA-13091)."""
        return self._try_to_advance(now_ms, live) if self.high_watermark < self.end_offset else _NOTHING

    def settings_changed(
        self, min_insync_replicas: int, now_ms: int, live: Set[BrokerId]
    ) -> Sequence[LeaderEffect]:
        """A lower ``min.insync.replicas`` may free a frozen high watermark."""
        self.min_insync_replicas = min_insync_replicas
        return self._try_to_advance(now_ms, live)

    # --- what producers and followers do --------------------------------------------------------

    def may_append(self, acks: int) -> ErrorCode:
        """Refuse ``acks=all`` while too few replicas are surely in sync: nothing is written."""
        if acks == -1 and len(self.isr.committed) < self.min_insync_replicas and self.is_under_min_isr:
            return ErrorCode.NOT_ENOUGH_REPLICAS
        return ErrorCode.NONE

    def appended(self, end_offset: int, now_ms: int, live: Set[BrokerId]) -> Sequence[LeaderEffect]:
        """The log grew; when the leader alone is in sync, so does the high watermark."""
        assert end_offset >= self.end_offset, "a leader's log only grows"
        self.end_offset = Offset(end_offset)
        return self._try_to_advance(now_ms, live)

    def append_outcome(self, end_offset: int) -> ErrorCode | None:
        """What to tell an ``acks=all`` producer whose records end here; None: it waits on."""
        if self.high_watermark < end_offset:
            return None
        in_sync = len(self.isr.maximal)
        if in_sync < self.min_insync_replicas and in_sync < self.effective_min_isr:
            return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        return ErrorCode.NONE

    def may_fetch(self, follower: BrokerId, broker_epoch: int) -> bool:
        """Is it a replica, and not an earlier registration of a broker that has fetched since?"""
        progress = self.followers.get(follower)
        return progress is not None and (broker_epoch < 0 or broker_epoch >= progress.broker_epoch)

    def follower_fetched(
        self,
        follower: BrokerId,
        at: int,
        log_start_offset: int,
        now_ms: int,
        live: Set[BrokerId],
        broker_epoch: int = UNKNOWN,
    ) -> Sequence[LeaderEffect]:
        """A fetch *from* an offset says that the follower holds all before it.

        A fetch answered with a diverging epoch does not say so and must not be reported here
        (KAFKA-13141). A restarted follower (a newer broker epoch) may have lost its disk: what
        was known about it before is forgotten (KIP-903).
        """
        progress = self.followers[follower]
        if broker_epoch > progress.broker_epoch:
            if progress.broker_epoch >= 0:
                progress.last_caught_up_ms = progress.last_fetch_ms = NEVER_MS
            progress.broker_epoch = broker_epoch
        before = progress.end_offset
        progress.fetched(at, log_start_offset, self.end_offset, now_ms)
        effects = self._try_to_expand(follower, progress, live)
        if at == before:
            return effects
        advanced = self._try_to_advance(now_ms, live)
        return [*effects, *advanced] if effects and advanced else effects or advanced

    def follower_was_caught_up(self, follower: BrokerId, at_ms: int) -> None:
        """A parked fetch session waited at this log's end until the log grew just now."""
        progress = self.followers.get(follower)
        if progress is not None and progress.end_offset == self.end_offset:
            progress.last_caught_up_ms = max(progress.last_caught_up_ms, at_ms)
            progress.last_fetch_ms = max(progress.last_fetch_ms, at_ms)

    def check_lag(self, now_ms: int) -> Sequence[LeaderEffect]:
        """Propose an ISR without the members that fell behind. Ids that are no replicas at all
        (a reassignment's leftovers, KAFKA-9672) count as fallen behind."""
        if self.isr.pending is not None:
            return _NOTHING
        lagging = [broker for broker in self.isr.committed if self._lags(broker, now_ms)]
        if not lagging:
            return _NOTHING
        remaining = tuple(broker for broker in self.isr.committed if broker not in lagging)
        return [self._begin_change(remaining, f"lagging={','.join(map(str, lagging))}")]

    # --- questions ------------------------------------------------------------------------------

    @property
    def effective_min_isr(self) -> int:
        """``min.insync.replicas``, but never more than there are replicas."""
        return min(self.min_insync_replicas, len(self.followers) + 1)

    @property
    def is_under_min_isr(self) -> bool:
        return len(self.isr.committed) < self.effective_min_isr

    @property
    def is_under_replicated(self) -> bool:
        """Replicas that are just being added do not count."""
        return len(self.isr.committed) < len(self.replicas) - len(self.adding)

    def may_tell_latest_offset(self) -> bool:
        """Until the high watermark reaches this epoch's start a client could see offsets go back."""
        return self.high_watermark >= self.epoch_start_offset

    def is_safe(self, end_offset: int) -> bool:
        """Do all replicas that may lead next hold everything before this offset?

        The high watermark says so as well, but it stands still while too few are in sync.
        """
        if self.high_watermark >= end_offset:
            return True
        maximal = self.isr.maximal
        return all(
            self.followers[each].end_offset >= end_offset for each in maximal if each in self.followers
        )

    def low_watermark(self, log_start_offset: int, live: Set[BrokerId]) -> int:
        """The lowest log start among the live replicas: what DeleteRecords waits for."""
        starts = [p.log_start_offset for broker, p in self.followers.items() if broker in live]
        return min([log_start_offset, *starts])

    # --- rules ----------------------------------------------------------------------------------

    def _try_to_advance(self, now_ms: int, live: Set[BrokerId]) -> Sequence[LeaderEffect]:
        """The high watermark rule: the lowest end among the leader, the maximal ISR, and those
        about to join it; frozen while fewer than the minimum are in sync (KAFKA-15583)."""
        if len(self.isr.committed) < self.min_insync_replicas and self.is_under_min_isr:
            return _NOTHING
        candidate = self.end_offset
        maximal = self.isr.maximal
        for broker, progress in self.followers.items():
            if progress.end_offset < candidate and (
                broker in maximal
                or (broker in live and progress.is_caught_up(self.end_offset, now_ms, self.lag_time_max_ms))
            ):
                candidate = Offset(progress.end_offset)
        if candidate <= self.high_watermark:
            return _NOTHING
        self.high_watermark = candidate
        return [HighWatermarkAdvanced(candidate)]

    def _try_to_expand(
        self, follower: BrokerId, progress: FollowerProgress, live: Set[BrokerId]
    ) -> Sequence[LeaderEffect]:
        """A live follower joins once it holds all that is committed, and this epoch's start:
        below that its tail may still be another leader's (KAFKA-7128)."""
        if self.isr.pending is not None or follower in self.isr.maximal or follower not in live:
            return _NOTHING
        if progress.end_offset < max(self.high_watermark, self.epoch_start_offset):
            return _NOTHING
        return [self._begin_change((*self.isr.committed, follower), f"caught up={follower}")]

    def _lags(self, broker: BrokerId, now_ms: int) -> bool:
        if broker == self.broker:
            return False
        progress = self.followers.get(broker)
        return progress is None or not progress.is_caught_up(self.end_offset, now_ms, self.lag_time_max_ms)

    def _begin_change(self, isr: tuple[BrokerId, ...], reason: str) -> ProposeIsr:
        self._change += 1
        self.isr.propose(self._change, isr)
        return self._proposal(isr, reason)

    def _proposal(self, isr: tuple[BrokerId, ...], reason: str) -> ProposeIsr:
        members = tuple(
            IsrMember(broker, self.followers[broker].broker_epoch if broker in self.followers else UNKNOWN)
            for broker in isr
        )
        return ProposeIsr(self._change, self.leader_epoch, self.partition_epoch, members, reason)
