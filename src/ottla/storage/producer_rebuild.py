"""Producer state from snapshots and batches: the newest sound snapshot, then what was written since."""

from ottla.records.batch import BatchHeader
from ottla.records.control import written_end_marker
from ottla.storage.log_directory import PartitionHome
from ottla.storage.producer_state import (
    SUFFIX,
    CorruptSnapshot,
    ProducerState,
    decode_snapshot,
)
from ottla.storage.segment import Segment
from ottla.storage.txn_index import AbortedTransaction


def snapshot_offsets(home: PartitionHome) -> list[int]:
    """The offsets for which a snapshot lies in the partition's directory, rising."""
    names = [entry.name for entry in home.directory.disk.list_directory(home.path)]
    stems = [name.removesuffix(SUFFIX) for name in names if name.endswith(SUFFIX)]
    return sorted(int(stem) for stem in stems if len(stem) == 20 and stem.isdecimal())


def save_snapshot(home: PartitionHome, producers: ProducerState, offset: int) -> None:
    """Write the state for records below ``offset``; there is none for the very first."""
    producers.snapshot_offset = offset
    if offset > 0:
        home.directory.disk.write_file(home.file(offset, SUFFIX), producers.encoded())


def delete_snapshots(home: PartitionHome, *, above: int | None = None, up_to: int | None = None) -> None:
    """Remove snapshots of a past that the log no longer has: those above or up to an offset."""
    for offset in snapshot_offsets(home):
        if (above is not None and offset > above) or (up_to is not None and offset <= up_to):
            home.directory.disk.remove(home.file(offset, SUFFIX))


def rebuild_producers(
    home: PartitionHome, segments: list[Segment], log_start_offset: int, end_offset: int, was_clean: bool
) -> ProducerState:
    """The state at ``end_offset``. After a clean stop a log without snapshots had no producers.

    Snapshots above the end are of a log that was longer: they go, or one day they would seem true again.
    """
    offsets = snapshot_offsets(home)
    for offset in offsets:
        if offset > end_offset:
            home.directory.disk.remove(home.file(offset, SUFFIX))
    found = [offset for offset in offsets if log_start_offset < offset <= end_offset]
    state = newest_sound_snapshot(home, found)
    if state is None:
        state = ProducerState(end_offset if was_clean and not offsets else log_start_offset)
    for at, segment in enumerate(segments):
        if at + 1 == len(segments) or segments[at + 1].base_offset > state.end_offset:
            replay(state, segment, end_offset)
    state.end_offset = end_offset
    return state


def newest_sound_snapshot(home: PartitionHome, offsets: list[int]) -> ProducerState | None:
    """The state in the newest of these snapshots that can be read; the others are removed."""
    for offset in reversed(offsets):
        path = home.file(offset, SUFFIX)
        try:
            return decode_snapshot(home.directory.disk.read_file(path), offset)
        except CorruptSnapshot:
            home.directory.disk.remove(path)
    return None


def replay(state: ProducerState, segment: Segment, end_offset: int) -> list[AbortedTransaction]:
    """Feed a segment's batches from the state's end on; returns the transactions that were aborted."""
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
        if header.producer_id >= 0 and (done := _apply(state, segment, header)) is not None:
            aborted.append(done)
    return aborted


def _apply(state: ProducerState, segment: Segment, header: BatchHeader) -> AbortedTransaction | None:
    if not header.is_control:
        state.wrote_batch(header)
        return None
    marker = written_end_marker(segment.read_batch(header), header._replace(position=0))
    done = None if marker is None else state.wrote_marker(header, marker)
    if done is None or not done.is_aborted:
        return None
    stable = state.last_stable_offset_after(done)
    return AbortedTransaction(done.producer_id, done.first_offset, done.last_offset, stable)
