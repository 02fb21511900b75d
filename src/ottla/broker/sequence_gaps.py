"""What the log tells of batches that do not continue their producer's story: a line a second at most."""

import logging
from typing import TYPE_CHECKING

from ottla.records.batch import BatchHeader

if TYPE_CHECKING:
    from ottla.broker.clock import Clock
    from ottla.broker.partition import Partition

log = logging.getLogger(__name__)

PAUSE_MS = 1_000


class SequenceGaps:
    """After a lost batch hundreds come out of order: the first of a second is told, the others counted."""

    __slots__ = ("_clock", "_quiet_until_ms", "_untold")

    def __init__(self, clock: "Clock") -> None:
        self._clock = clock
        self._quiet_until_ms = 0
        self._untold = 0

    def note(self, partition: "Partition", header: BatchHeader, *, sent_again: bool) -> None:
        """A batch was refused; the producer hears "not the leader" where it shall send it again."""
        now_ms = self._clock.monotonic_ms()
        if now_ms < self._quiet_until_ms:
            self._untold += 1
            return
        producer = partition.log.producers.producers.get(header.producer_id)
        log.warning(
            "%s refused the batch of producer %d (epoch %d) that begins at sequence %d: %s%s%s",
            partition.name,
            header.producer_id,
            header.producer_epoch,
            header.base_sequence,
            "it knows no earlier one"
            if producer is None
            else f"the last one written is {producer.last_sequence} of epoch {producer.epoch}",
            "; it has just been elected, so the producer is asked to send again" if sent_again else "",
            f" ({self._untold} more were refused since the last such line)" if self._untold else "",
        )
        self._untold = 0
        self._quiet_until_ms = now_ms + PAUSE_MS
