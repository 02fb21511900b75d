"""Where each leader epoch begins in a log. Followers decide by it where to truncate."""

from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple

from ottla.records.batch import BatchHeader

UNDEFINED_EPOCH = -1
UNDEFINED_OFFSET = -1


class EpochEntry(NamedTuple):
    """An epoch and the first offset written under it."""

    epoch: int
    start_offset: int


class LeaderEpochs:
    """Entries with rising epochs and offsets; ``dirty`` until the owner has saved them."""

    __slots__ = ("_entries", "dirty")

    def __init__(self, entries: "list[EpochEntry] | None" = None) -> None:
        self._entries: list[EpochEntry] = []
        self.dirty = False
        for entry in entries or ():
            self.assign(entry.epoch, entry.start_offset)
        self.dirty = False

    def __len__(self) -> int:
        return len(self._entries)

    def entries(self) -> list[EpochEntry]:
        return list(self._entries)

    @property
    def latest_epoch(self) -> int:
        """The newest epoch, or -1."""
        return self._entries[-1].epoch if self._entries else UNDEFINED_EPOCH

    @property
    def latest(self) -> EpochEntry | None:
        return self._entries[-1] if self._entries else None

    @property
    def latest_start_offset(self) -> int:
        """Where the newest epoch begins, or 0."""
        return self._entries[-1].start_offset if self._entries else 0

    def learn(self, headers: Iterable[BatchHeader]) -> None:
        """Take note of the epochs of batches, in order of offset."""
        for header in headers:
            if header.partition_leader_epoch > self.latest_epoch:
                self.assign(header.partition_leader_epoch, header.base_offset)

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Let an epoch begin at an offset; removes entries that contradict it. True if anything changed."""
        entries = self._entries
        if epoch < 0 or start_offset < 0:
            return False
        if entries and entries[-1].epoch == epoch and entries[-1].start_offset <= start_offset:
            return False
        while entries and (entries[-1].epoch >= epoch or entries[-1].start_offset >= start_offset):
            entries.pop()
        entries.append(EpochEntry(epoch, start_offset))
        self.dirty = True
        return True

    def end_offset_for(self, requested_epoch: int, log_end_offset: int) -> tuple[int, int]:
        """The largest known epoch not above the requested one, and where it ends (KIP-101, KIP-279).

        (-1, -1) if the epoch is unknown because it is newer than all known, or none is known.
        """
        entries = self._entries
        if requested_epoch == UNDEFINED_EPOCH or not entries or requested_epoch > entries[-1].epoch:
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        if requested_epoch == entries[-1].epoch:
            return requested_epoch, log_end_offset
        above = bisect_right(entries, requested_epoch, key=lambda entry: entry.epoch)
        end = entries[above].start_offset
        return (requested_epoch if above == 0 else entries[above - 1].epoch), end

    def epoch_for_offset(self, offset: int) -> int:
        """The epoch that covers an offset, or -1."""
        at = bisect_right(self._entries, offset, key=lambda entry: entry.start_offset)
        return self._entries[at - 1].epoch if at else UNDEFINED_EPOCH

    def truncate_from_end(self, end_offset: int) -> None:
        """Forget epochs that begin at or behind the log's new end."""
        entries = self._entries
        while entries and entries[-1].start_offset >= end_offset:
            entries.pop()
            self.dirty = True

    def truncate_from_start(self, start_offset: int) -> None:
        """Let the log begin at an offset: the epoch of that offset begins there now."""
        entries = self._entries
        at = bisect_right(entries, start_offset, key=lambda entry: entry.start_offset)
        if at and entries[at - 1].start_offset != start_offset:
            entries[at - 1] = EpochEntry(entries[at - 1].epoch, start_offset)
            self.dirty = True
        if at > 1:
            del entries[: at - 1]
            self.dirty = True

    def clear(self) -> None:
        if self._entries:
            self._entries = []
            self.dirty = True
