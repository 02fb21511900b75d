"""What a replica checks before it serves a fetch: the reader's leader epoch, and where its log diverges."""

from ottla.model.errors import ErrorCode
from ottla.model.ids import LeaderEpoch, Offset
from ottla.replication.events import EpochEndOffset
from ottla.replication.truncation import UNDEFINED, EpochLookup

_NONE = int(ErrorCode.NONE)
_FENCED = int(ErrorCode.FENCED_LEADER_EPOCH)
_UNKNOWN = int(ErrorCode.UNKNOWN_LEADER_EPOCH)
_OUT_OF_RANGE = int(ErrorCode.OFFSET_OUT_OF_RANGE)


def check_leader_epoch(requested: int, own: int) -> int:
    """Refuse a reader that believes in another leader than the one whose log this is (KIP-320).

    A reader that names no epoch (-1) is not checked.
    """
    if requested in (own, UNDEFINED):
        return _NONE
    return _FENCED if requested < own else _UNKNOWN


def check_position(
    epochs: EpochLookup,
    *,
    fetch_offset: int,
    last_fetched_epoch: int,
    log_start_offset: int,
    end_offset: int,
) -> int | EpochEndOffset:
    """0 when the reader may read on from there; an error; or where its tail leaves this log.

    An offset below the log start is out of range whatever its epoch (KAFKA-12996).
    """
    if last_fetched_epoch != UNDEFINED:
        epoch, epoch_end = epochs.end_offset_for(last_fetched_epoch, end_offset)
        if epoch_end == UNDEFINED or fetch_offset < log_start_offset:
            return _OUT_OF_RANGE
        if epoch < last_fetched_epoch or epoch_end < fetch_offset:
            return EpochEndOffset(LeaderEpoch(epoch), Offset(epoch_end))
    if not log_start_offset <= fetch_offset <= end_offset:
        return _OUT_OF_RANGE
    return _NONE
