"""Reading an offsets partition from its start to its end, a slice at a time so that nobody waits.

What was read counts only once all that may lead next hold it, too. A follower that is elected does not know
what of its log's end was acknowledged; if it served from there and lost the partition to a shorter log, its
successor would count the same generation again, or take back an offset that somebody has read.
"""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from ottla.coordinator.group.effects import StoredRecord
from ottla.coordinator.group.loader import Loader
from ottla.model.errors import LogDirectoryFailed
from ottla.model.ids import Offset, TopicPartition
from ottla.records.batch import BatchHeader, CorruptRecords, batches
from ottla.records.control import read_end_marker
from ottla.records.pairs import read_pairs

if TYPE_CHECKING:
    from ottla.broker.node import Node
    from ottla.broker.timers import Timer

log = logging.getLogger(__name__)

SLICE_BYTES = 64 * 1024
"""How much of the log is read before others get their turn."""

GROUPS_PER_TURN = 200
"""How many groups are made of what was read before others get their turn."""

LOOK_AGAIN_MS = 10
"""How soon it is looked again whether the followers in sync hold what was read."""


class Loading:
    """One load; it can be cancelled, and reports once when it is done."""

    def __init__(self, node: "Node", partition: TopicPartition, done: Callable[[Loader], None]) -> None:
        self._node = node
        self._partition = partition
        self._done = done
        self._loader = Loader()
        self._next: int | None = None
        self._timer: Timer | None = None

    def begin(self) -> None:
        self._timer = self._node.timers.after(0, self._read_slice)

    def cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _read_slice(self) -> None:
        log_ = self._node.partitions.log(self._partition)
        if log_ is None:
            return
        if self._next is None:
            self._next = log_.log_start_offset
        end = log_.end_offset
        if self._next < end:
            try:
                piece = log_.read(Offset(self._next), SLICE_BYTES, end)
                data = None if piece is None else bytes(piece.buffer())
            except LogDirectoryFailed as failed:
                self._node.partitions.directory_failed(failed)
                return
            self._next = end if data is None else self._take(data, end)
            self._timer = self._node.timers.after(0, self._read_slice)
        else:
            self._make_some()

    def _make_some(self) -> None:
        if not self._loader.make_some(GROUPS_PER_TURN):
            self._timer = self._node.timers.after(0, self._make_some)
        elif self._is_safe():
            self._done(self._loader)
        else:
            log.info("groups wait for the followers in sync partition=%s end=%s", self._partition, self._next)
            self._look_again()

    def _look_again(self) -> None:
        if self._is_safe():
            self._done(self._loader)
        else:
            self._timer = self._node.timers.after(LOOK_AGAIN_MS, self._look_again)

    def _is_safe(self) -> bool:
        """Do all that may lead next hold what was read? Whoever loses the leadership cancels the load."""
        assert self._next is not None, "first it is read"
        partition = self._node.partitions.find(*self._partition)
        return partition is not None and partition.leader is not None and partition.leader.is_safe(self._next)

    def _take(self, data: bytes, end: int) -> int:
        """Apply the whole batches of a slice; what cannot be read is skipped, and said."""
        assert self._next is not None, "reading begins at the log's start"
        following = self._next
        view = memoryview(data)
        try:
            for header in batches(view):
                if header.last_offset >= self._next:
                    self._apply_or_skip(view, header)
                following = max(following, header.last_offset + 1)
        except CorruptRecords as error:
            self._say_unreadable(following, error)
            return end
        return following if following > self._next else end

    def _apply_or_skip(self, view: memoryview, header: BatchHeader) -> None:
        try:
            self._apply(view, header)
        except CorruptRecords as error:
            self._say_unreadable(header.base_offset, error)

    def _say_unreadable(self, offset: int, error: CorruptRecords) -> None:
        log.error("offsets unreadable partition=%s offset=%d reason=%s", self._partition, offset, error)

    def _apply(self, view: memoryview, header: BatchHeader) -> None:
        loader = self._loader
        if header.is_control:
            marker = read_end_marker(view, header)
            if marker is not None:
                loader.end_transaction(header.producer_id, is_commit=marker.is_commit)
            return
        pairs = read_pairs(view, header)
        if not header.is_transactional:
            loader.apply(pairs)
            return
        for key, value in pairs:
            if key is not None:
                record = StoredRecord(key, value)
                loader.apply_in_transaction(header.producer_id, header.base_offset, record)
