"""Reading an offsets partition from its start to its end, a slice at a time so that nobody waits."""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from ottla.coordinator.group.effects import StoredRecord
from ottla.coordinator.group.records import Loader
from ottla.model.ids import Offset, TopicPartition
from ottla.records.batch import BatchHeader, CorruptRecords, batches
from ottla.records.control import read_end_marker
from ottla.records.record import read_records

if TYPE_CHECKING:
    from ottla.broker.node import Node
    from ottla.broker.timers import Timer

log = logging.getLogger(__name__)

SLICE_BYTES = 256 * 1024
"""How much of the log is read before others get their turn."""

DECODED_PER_TURN = 4_000
"""How many surviving records are decoded before others get their turn."""


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
            piece = log_.read(Offset(self._next), SLICE_BYTES, end)
            self._next = end if piece is None else self._take(bytes(piece.buffer()), end)
            self._timer = self._node.timers.after(0, self._read_slice)
        else:
            self._decode_some()

    def _decode_some(self) -> None:
        if self._loader.decode_some(DECODED_PER_TURN):
            self._done(self._loader)
        else:
            self._timer = self._node.timers.after(0, self._decode_some)

    def _take(self, data: bytes, end: int) -> int:
        """Apply the whole batches of a slice; what cannot be read is skipped, and said."""
        assert self._next is not None, "reading begins at the log's start"
        following = self._next
        view = memoryview(data)
        for header in batches(view):
            if header.last_offset >= self._next:
                try:
                    self._apply(view, header)
                except CorruptRecords as error:
                    log.error(
                        "offsets unreadable partition=%s offset=%d reason=%s",
                        self._partition,
                        header.base_offset,
                        error,
                    )
            following = max(following, header.last_offset + 1)
        return following if following > self._next else end

    def _apply(self, view: memoryview, header: BatchHeader) -> None:
        if header.is_control:
            marker = read_end_marker(view, header)
            if marker is not None:
                self._loader.end_transaction(header.producer_id, is_commit=marker.is_commit)
            return
        for record in read_records(view, header):
            if record.key is None:
                continue
            if header.is_transactional:
                stored = StoredRecord(record.key, record.value)
                self._loader.apply_in_transaction(header.producer_id, stored)
            else:
                self._loader.apply(record.key, record.value)
