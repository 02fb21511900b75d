"""Search the log for a batch that its producer sends again long after it was written.

The state remembers each producer's last five batches, as Kafka does. An older one is sent again when the
leader that took it stopped responding and the producer went on with the next leader. After a restart the
state comes from a snapshot, which has only each producer's last batch.
"""

from collections.abc import Iterator, Sequence

from ottla.records.batch import BatchHeader, CorruptRecords
from ottla.storage.producers.state import Producer, WrittenBatch, is_before
from ottla.storage.segment.segment import Segment

LOOKED_AT_MAX = 2048
"""About how many batches are searched."""
STEP_BYTES = 128 * 1024


def find_written(
    header: BatchHeader, producer: Producer, below: int, segments: Sequence[Segment]
) -> WrittenBatch | None:
    """The batch below an offset that has this producer, epoch and sequences.

    If the search ends undecided, the producer remembers how far it went: another search would get no further.
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
    """The batches below an offset, one piece of the log at a time, the last piece first."""
    left = LOOKED_AT_MAX
    for segment in reversed(segments):
        if left <= 0:
            return
        if segment.base_offset >= below:
            continue
        try:
            first = segment.locate(below)  # skip what the leader wrote since
            end = segment.size if first is None else first.position
            while end > 0 and left > 0:
                start = segment.index.floor_position(max(0, end - STEP_BYTES))
                step = _between(segment, start, end)
                left -= len(step)
                yield step
                end = start
        except CorruptRecords:  # a wrong index entry; the next read there rebuilds the index
            return


def _between(segment: Segment, start: int, end: int) -> list[BatchHeader]:
    step: list[BatchHeader] = []
    for found in segment.scan(start):
        if found.position >= end:
            break
        step.append(found)
    return step
