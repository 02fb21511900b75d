"""What the log tells of batches that do not continue their producer's story."""

import logging
from typing import TYPE_CHECKING

from ottla.broker.log_limit import LogLimit
from ottla.records.batch import BatchHeader

if TYPE_CHECKING:
    from ottla.broker.clock import Clock
    from ottla.broker.partition import Partition

log = logging.getLogger(__name__)


class SequenceGaps:
    """After a lost batch hundreds come out of order: some are told, the others counted."""

    __slots__ = ("_limit",)

    def __init__(self, clock: "Clock") -> None:
        self._limit = LogLimit(lambda: clock.monotonic_ms() / 1_000)

    def note(self, partition: "Partition", header: BatchHeader, *, shall_send_again: bool) -> None:
        """A batch was refused; a leader that has just been elected has it sent again."""
        left_out = self._limit.take()
        if left_out is None:
            return
        producer = partition.log.producers.producers.get(header.producer_id)
        log.warning(
            "batch out of order, %s partition=%s producer=%d epoch=%d sequence=%d"
            " last_epoch=%d last_sequence=%d left_out=%d",
            "to be sent again" if shall_send_again else "refused",
            partition.name,
            header.producer_id,
            header.producer_epoch,
            header.base_sequence,
            -1 if producer is None else producer.epoch,
            -1 if producer is None else producer.last_sequence,
            left_out,
        )
