"""Producer state from the log: load the newest snapshot, then replay the batches written since."""

from collections.abc import Iterable
from itertools import pairwise

from ottla.records.batch import BatchHeader
from ottla.records.control import written_end_marker
from ottla.storage.disk.directory import PartitionHome
from ottla.storage.disk.file_names import SNAPSHOT_SUFFIX
from ottla.storage.producers.snapshots import newest_readable_snapshot, snapshot_offsets
from ottla.storage.producers.state import ProducerState
from ottla.storage.segment.segment import Segment
from ottla.storage.segment.txn_index import AbortedTransaction


def load_state(
    home: PartitionHome,
    segments: Iterable[Segment],
    log_start_offset: int,
    end_offset: int,
    *,
    was_clean: bool,
) -> ProducerState:
    """The state at ``end_offset``. After a clean stop, a log without snapshots had no producers.

    Snapshots above the end are removed: if the log grows again they would be taken for its own.
    """
    offsets = snapshot_offsets(home)
    for offset in offsets:
        if offset > end_offset:
            home.directory.disk.remove(home.file(offset, SNAPSHOT_SUFFIX))
    found = [offset for offset in offsets if log_start_offset < offset <= end_offset]
    state = newest_readable_snapshot(home, found)
    if state is None:
        state = ProducerState(end_offset if was_clean and not offsets else log_start_offset)
    for segment, following in pairwise([*segments, None]):
        if segment is not None and (following is None or following.base_offset > state.end_offset):
            replay(state, segment, end_offset)
    state.end_offset = end_offset
    return state


def replay(state: ProducerState, segment: Segment, end_offset: int) -> list[AbortedTransaction]:
    """Apply a segment's batches from the state's end on; returns the transactions that were aborted."""
    aborted: list[AbortedTransaction] = []
    first = segment.locate(state.end_offset)
    if first is None:
        return aborted
    for header in segment.scan(first.position):
        if header.base_offset >= end_offset:
            break
        if header.base_offset < state.end_offset:
            continue
        state.end_offset = header.end_offset
        if header.producer_id >= 0 and (transaction := _apply(state, segment, header)) is not None:
            aborted.append(transaction)
    return aborted


def _apply(state: ProducerState, segment: Segment, header: BatchHeader) -> AbortedTransaction | None:
    if not header.is_control:
        state.wrote_batch(header)
        return None
    marker = written_end_marker(segment.read_batch(header), header._replace(position=0))
    return None if marker is None else state.wrote_marker(header, marker)
