"""Load a shard: read its partition from start to end and apply every record, a slice at a time.

The shard serves only once all in-sync replicas hold what was read. A new leader does not know which part of
its log's end was acknowledged. If it served from there and then lost the partition to a replica with a
shorter log, the next coordinator would use a generation twice, or take back an offset that a client has read.
"""

import logging
from typing import Any

from ottla.broker.replicas.hosted import Partitions
from ottla.broker.runtime.tasks import Pause, Steps
from ottla.coordinator.shard import Shard
from ottla.model.errors import LogDirectoryFailed
from ottla.model.ids import Offset, TopicPartition
from ottla.records.batch import BatchHeader, CorruptRecords, batches
from ottla.records.control import read_end_marker
from ottla.records.pairs import read_pairs

log = logging.getLogger(__name__)

SLICE_BYTES = 64 * 1024
"""How much of the log is read before others get their turn."""

NEXT_TURN = Pause(0)
"""After a failover many shards load at once: each reads one slice a turn, so that a turn stays short."""

CHECK_AGAIN_MS = 10
"""The pause between checks whether the in-sync replicas hold what was read."""


class Loading:
    """One load of one shard."""

    def __init__(self, partitions: Partitions, partition: TopicPartition, shard: Shard[Any]) -> None:
        self._partitions = partitions
        self._partition = partition
        self._shard = shard
        self._next = 0

    def run(self) -> Steps[bool]:
        """The steps of the load; they return whether the shard is loaded."""
        yield NEXT_TURN
        if not (yield from self._read_log()):
            return False
        for _ in self._shard.restore():
            yield NEXT_TURN
        if not self._is_safe():
            log.info("load waits for in-sync replicas partition=%s end=%d", self._partition, self._next)
        while not self._is_safe():
            yield Pause(CHECK_AGAIN_MS)
        return True

    def _read_log(self) -> Steps[bool]:
        while (log_ := self._partitions.log(self._partition)) is not None:
            self._next = max(self._next, log_.log_start_offset)
            end = log_.end_offset
            if self._next >= end:
                return True
            try:
                piece = log_.read(Offset(self._next), SLICE_BYTES, end)
                data = None if piece is None else bytes(piece.buffer())
            except LogDirectoryFailed as failed:
                self._partitions.directory_failed(failed)
                return False
            self._next = end if data is None else self._apply_slice(data, end)
            yield NEXT_TURN
        return False

    def _is_safe(self) -> bool:
        """Whether all replicas that may lead next hold what was read."""
        partition = self._partitions.find(*self._partition)
        return partition is not None and partition.leader is not None and partition.leader.is_safe(self._next)

    def _apply_slice(self, data: bytes, end: int) -> int:
        """Apply the whole batches of a slice, skip unreadable ones; return the offset to go on from."""
        following = self._next
        view = memoryview(data)
        try:
            for header in batches(view):
                if header.last_offset >= self._next:
                    self._apply_or_skip(view, header)
                following = max(following, header.last_offset + 1)
        except CorruptRecords as error:
            self._log_unreadable(following, error)
            return end
        return following if following > self._next else end

    def _apply_or_skip(self, view: memoryview, header: BatchHeader) -> None:
        try:
            self._apply(view, header)
        except CorruptRecords as error:
            self._log_unreadable(header.base_offset, error)

    def _log_unreadable(self, offset: int, error: CorruptRecords) -> None:
        log.error("batch unreadable partition=%s offset=%d reason=%s", self._partition, offset, error)

    def _apply(self, view: memoryview, header: BatchHeader) -> None:
        if header.is_control:
            marker = read_end_marker(view, header)
            if marker is not None:
                self._shard.end_transaction(header.producer_id, is_commit=marker.is_commit)
            return
        producer_id = header.producer_id if header.is_transactional else None
        self._shard.apply(read_pairs(view, header), producer_id)
