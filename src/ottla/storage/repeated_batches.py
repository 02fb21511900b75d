"""A batch that is sent again long after it was written: found in the log itself.

Of each producer the last few batches are remembered, as in Kafka. One that lies farther back is sent again
when the leader that took it stood still, and its producer wrote on at the next one. It is also what a
snapshot, which keeps a producer's last batch alone, does not tell after a restart.
"""

from collections.abc import Iterator, Sequence

from ottla.records.batch import BatchHeader, CorruptRecords
from ottla.storage.producer_state import Producer, WrittenBatch, is_before
from ottla.storage.segment import Segment

LOOKED_AT_MAX = 2048
"""How many batches are looked at, about, before the search is given up."""
STEP_BYTES = 128 * 1024


def find_written(
    header: BatchHeader, producer: Producer, below: int, segments: Sequence[Segment]
) -> WrittenBatch | None:
    """The batch below an offset that has this producer, epoch and sequences.

    Where the search has to end before it is decided, that is noted: no other one would come farther.
    """
    earliest = producer.batches[0].first_sequence
    for step in _steps_back(below, segments):
        own = [
            found
            for found in step
            if found.producer_id == header.producer_id
            and found.producer_epoch == header.producer_epoch
            and not found.is_control
        ]
        for found in own:
            if found.base_sequence == header.base_sequence and found.last_sequence == header.last_sequence:
                return WrittenBatch(
                    found.last_sequence, found.last_offset, found.last_offset_delta, found.max_timestamp
                )
        if own:
            earliest = own[0].base_sequence
            if not is_before(header.base_sequence, earliest):
                return None
    producer.unfindable_before = earliest
    return None


def _steps_back(below: int, segments: Sequence[Segment]) -> Iterator[list[BatchHeader]]:
    """Batches below an offset, a piece of the log at a time: the last piece first."""
    left = LOOKED_AT_MAX
    for segment in reversed(segments):
        if left <= 0:
            return
        if segment.base_offset >= below:
            continue
        try:
            first = segment.locate(below)  # what the leader wrote since is not looked at
            end = segment.size if first is None else first.position
            while end > 0 and left > 0:
                start = segment.index.floor_position(max(0, end - STEP_BYTES))
                step = _between(segment, start, end)
                left -= len(step)
                yield step
                end = start
        except CorruptRecords:  # an index that leads into the middle of a batch; who reads there mends it
            return


def _between(segment: Segment, start: int, end: int) -> list[BatchHeader]:
    step: list[BatchHeader] = []
    for found in segment.scan(start):
        if found.position >= end:
            break
        step.append(found)
    return step
