"""Where a follower truncates its log, once the leader has said where an epoch ended.

Not at the high watermark: a follower's own lags behind the leader's, and truncating there
loses committed records when it is elected next (KIP-101). Epochs tell exactly which
records a deposed leader wrote alone.
"""

from typing import Protocol

from ottla.model.ids import Offset
from ottla.replication.events import EpochEndOffset

UNDEFINED = -1


class EpochLookup(Protocol):
    """A log's memory of its leader epochs."""

    def end_offset_for(self, epoch: int, log_end_offset: int, /) -> tuple[int, int]:
        """The largest known epoch up to this one, and where it ends; ``(-1, -1)``: unknown."""
        ...


def plan_truncation(
    leader: EpochEndOffset, own: EpochLookup, *, fetch_offset: int, end_offset: int
) -> Offset:
    """How far back the own log can agree with a leader that ends ``leader.epoch`` there.

    When the own log does not know that epoch, its next lower one is tried: cut to where that one
    ended here, and let the next fetch carry it. The leader's answer to that brings the next cut, until
    both know the same epoch, which one step alone does not reach after two quick failovers (KIP-279).
    """
    if leader.end_offset == UNDEFINED:
        return Offset(min(fetch_offset, end_offset))
    if leader.epoch == UNDEFINED:
        return Offset(min(leader.end_offset, end_offset))
    own_epoch, own_end_offset = own.end_offset_for(leader.epoch, end_offset)
    if own_end_offset == UNDEFINED:
        return Offset(min(leader.end_offset, end_offset))
    if own_epoch != leader.epoch:
        return Offset(min(own_end_offset, end_offset))
    return Offset(min(own_end_offset, leader.end_offset, end_offset))
