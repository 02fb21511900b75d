"""A partition's follower: from where it fetches, and what it makes of the leader's answers.

Every answer is matched with what was asked (epoch and offset): ignore an answer
that was asked for before a change of role or a truncation (KAFKA-13207).
"""

from collections.abc import Sequence
from enum import Enum, auto
from typing import NamedTuple, Protocol

from ottla.model.errors import ErrorCode
from ottla.model.ids import BrokerId, LeaderEpoch, Offset, TopicId
from ottla.replication.effects import (
    AppendFetched,
    BackOff,
    FindLeaderOffset,
    FollowerEffect,
    FollowLeader,
    RestartAt,
    StopFetching,
    TruncateTo,
)
from ottla.replication.events import EpochEndOffset, LeaderOffsetFound, PartitionFetched
from ottla.replication.truncation import EpochLookup, plan_truncation

_NOTHING: tuple[FollowerEffect, ...] = ()
_APPEND: tuple[FollowerEffect, ...] = (AppendFetched(),)
_NONE = int(ErrorCode.NONE)


class FollowedLog(Protocol):
    """What the follower's decisions read of its log."""

    @property
    def end_offset(self) -> int: ...

    @property
    def log_start_offset(self) -> int: ...

    @property
    def high_watermark(self) -> int: ...

    @property
    def epochs(self) -> "KnownEpochs": ...


class KnownEpochs(EpochLookup, Protocol):
    """The epochs of the log, with the latest at hand."""

    @property
    def latest_epoch(self) -> int:
        """The highest leader epoch in the log; -1 when it knows none."""
        ...


class Phase(Enum):
    """What the follower is doing."""

    FETCHING = auto()
    FINDING_OFFSET = auto()
    BACKED_OFF = auto()
    FAILED = auto()


class FetchFrom(NamedTuple):
    """What the next Fetch says of this partition. A tuple: they are compared all the time."""

    topic_id: TopicId
    leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    log_start_offset: int


class PartitionFollower:
    """The follower's side of one partition, for one leader epoch."""

    __slots__ = (
        "leader",
        "leader_epoch",
        "leader_high_watermark",
        "log",
        "phase",
        "retry_at_ms",
        "topic_id",
    )

    def __init__(
        self, leader: BrokerId, leader_epoch: LeaderEpoch, topic_id: TopicId, log: FollowedLog
    ) -> None:
        self.leader = leader
        self.topic_id = topic_id
        self.leader_epoch = leader_epoch
        self.log = log
        self.phase = Phase.FETCHING
        self.retry_at_ms = 0
        self.leader_high_watermark: int | None = None
        """What the leader last said; None before it said anything."""

    def started(self) -> Sequence[FollowerEffect]:
        """Begin to follow, or go on with another fetcher, which starts afresh. Only a log without any
        epoch falls back to its high watermark."""
        if self.phase is not Phase.FAILED:
            self.phase = Phase.FETCHING
        log = self.log
        if log.epochs.latest_epoch < 0 and log.high_watermark < log.end_offset:
            return [TruncateTo(Offset(log.high_watermark), "no leader epoch is known")]
        return _NOTHING

    def next_fetch(self) -> FetchFrom:
        """Ask for what follows the own log; the latest *epoch in the log* lets the leader see a
        wrong tail, whether or not the last answer held records (KAFKA-15510)."""
        log = self.log
        return FetchFrom(
            self.topic_id, self.leader_epoch, log.end_offset, log.epochs.latest_epoch, log.log_start_offset
        )

    @property
    def is_behind(self) -> bool:
        """Does it lack committed records, as far as it knows?"""
        return self.leader_high_watermark is None or self.leader_high_watermark > self.log.end_offset

    def may_fetch(self, now_ms: int) -> bool:
        """Is it time to fetch? The end of a back-off is noticed here."""
        if self.phase is Phase.BACKED_OFF and now_ms >= self.retry_at_ms:
            self.phase = Phase.FETCHING
        return self.phase is Phase.FETCHING

    def back_off(self, until_ms: int) -> None:
        """Fetch nothing before then."""
        if self.phase is not Phase.FAILED:
            self.phase = Phase.BACKED_OFF
            self.retry_at_ms = until_ms

    def stop(self) -> None:
        """Fetch nothing until the controller speaks again."""
        self.phase = Phase.FAILED

    def fetched(self, answer: PartitionFetched) -> Sequence[FollowerEffect]:
        """Hear the leader's answer to one fetch of this partition."""
        log = self.log
        if (
            answer.leader_epoch != self.leader_epoch
            or answer.fetch_offset != log.end_offset
            or self.phase is not Phase.FETCHING
        ):
            return _NOTHING
        if answer.error != _NONE:
            return self._refused(ErrorCode(answer.error))
        if answer.diverging is not None:
            return self._diverged(answer.diverging, answer.fetch_offset)
        if answer.record_bytes:
            return _APPEND
        return self.appended(answer)

    def appended(self, answer: PartitionFetched) -> Sequence[FollowerEffect]:
        """The records of an answer are in the log: now its offsets may count."""
        log = self.log
        self.leader_high_watermark = answer.high_watermark
        high_watermark = max(min(answer.high_watermark, log.end_offset), log.log_start_offset)
        if high_watermark == log.high_watermark and answer.log_start_offset <= log.log_start_offset:
            return _NOTHING
        return [FollowLeader(Offset(high_watermark), Offset(answer.log_start_offset))]

    def found_leader_offset(self, found: LeaderOffsetFound) -> Sequence[FollowerEffect]:
        """Go on after the leader has no such offset: it was elected uncleanly and is behind, or
        it has dropped what comes next."""
        if found.leader_epoch != self.leader_epoch or self.phase is not Phase.FINDING_OFFSET:
            return _NOTHING
        self.phase = Phase.FETCHING
        if found.error is not ErrorCode.NONE:
            return self._refused(found.error)
        end_offset = self.log.end_offset
        if not found.earliest:
            if found.offset < end_offset:
                return [TruncateTo(found.offset, "the leader's log ends before ours")]
            self.phase = Phase.FINDING_OFFSET
            return [FindLeaderOffset(earliest=True)]
        if found.offset > end_offset:
            return [RestartAt(found.offset, "the leader's log begins after our end")]
        return _NOTHING

    def _diverged(self, leader: EpochEndOffset, fetch_offset: int) -> Sequence[FollowerEffect]:
        """The tail was written by another leader: truncate it first. Only a later answer may move the
        high watermark (KAFKA-13141)."""
        log = self.log
        cut = plan_truncation(leader, log.epochs, fetch_offset=fetch_offset, end_offset=log.end_offset)
        return [TruncateTo(cut, f"diverging epoch={leader.epoch} end={leader.end_offset}")]

    def _refused(self, error: ErrorCode) -> Sequence[FollowerEffect]:
        match error:
            case ErrorCode.OFFSET_OUT_OF_RANGE:
                self.phase = Phase.FINDING_OFFSET
                return [FindLeaderOffset(earliest=False)]
            case ErrorCode.FENCED_LEADER_EPOCH:
                # The controller has already decided on a newer epoch: its request will restart us.
                return [StopFetching(error.name)]
            case _:
                return [BackOff(error.name)]
