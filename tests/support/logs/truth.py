"""What must hold of every log, whatever happened to it: checked against a rescan of its batches."""

from __future__ import annotations

from itertools import pairwise

from ottla.records.batch import crc_is_valid, read_header
from ottla.storage.log.leader_epochs import LeaderEpochs
from ottla.storage.log.log import Log
from ottla.storage.producers.replay import replay
from ottla.storage.producers.state import Producer, ProducerState
from ottla.storage.segment.segment import Segment


def check_log(log: Log, *, is_dense: bool = True) -> None:
    """Batches sound and in order; indexes, epochs and producers agree with them."""
    check_data(log, is_dense=is_dense)
    _check_epochs(log, is_dense)
    _check_producers(log)
    assert log.log_start_offset <= log.high_watermark <= log.end_offset
    assert log.recovery_point <= log.end_offset


def check_data(log: Log, *, is_dense: bool = True, epochs_rise: bool = True) -> None:
    """Batches sound and in order, found by every index."""
    _check_batches(log, is_dense, epochs_rise)
    for segment in log.segments:
        _check_indexes(segment)
    _check_reads(log)


def _check_batches(log: Log, is_dense: bool, epochs_rise: bool) -> None:
    segments = log.segments
    expected = segments[0].base_offset
    last_epoch = -1
    for at, segment in enumerate(segments):
        assert segment.base_offset >= expected, "segments do not overlap"
        position = 0
        for header in segment.scan(0):
            assert header.position == position
            assert header.base_offset >= segment.base_offset
            if is_dense:
                assert header.base_offset == expected, f"{header.base_offset} follows {expected}"
            assert header.base_offset >= expected
            content = segment.file().pread(header.size, header.position)
            assert crc_is_valid(content, read_header(content))
            if epochs_rise:
                assert header.partition_leader_epoch >= last_epoch, "leader epochs never fall"
            last_epoch = header.partition_leader_epoch
            expected, position = header.end_offset, header.end_position
        assert position == segment.size == segment.file().size(), "a segment holds whole batches alone"
        if at + 1 < len(segments):
            assert expected <= segments[at + 1].base_offset
    assert expected <= log.end_offset


def _check_indexes(segment: Segment) -> None:
    by_position = {header.position: header for header in segment.scan(0)}
    for offset, position in segment.index.entries():
        assert by_position[position].last_offset == offset
    largest = -1
    maxima: dict[int, int] = {}
    for header in by_position.values():
        largest = max(largest, header.max_timestamp)
        maxima[header.last_offset] = largest
    assert segment.max_timestamp == largest
    for timestamp, offset in segment.times.entries():
        assert maxima[offset] == timestamp


def _check_reads(log: Log) -> None:
    for _, header in log.batches_from(log.log_start_offset):
        offset = max(header.base_offset, log.log_start_offset)
        found = log.read(offset, 1, log.end_offset)
        assert found is not None
        content = found.read()
        assert read_header(content).base_offset == header.base_offset
        assert len(content) == header.size


def _check_epochs(log: Log, is_dense: bool) -> None:
    rescanned = LeaderEpochs()
    for _, header in log.batches_from(log.log_start_offset):
        if header.partition_leader_epoch > rescanned.latest_epoch:
            rescanned.assign(header.partition_leader_epoch, max(header.base_offset, log.log_start_offset))
    known = [entry for entry in log.epochs.entries() if entry.start_offset < log.end_offset]
    with_data = {entry.epoch: entry.start_offset for entry in rescanned.entries()}
    for before, after in pairwise(known):
        assert before.epoch < after.epoch
        assert before.start_offset < after.start_offset
    found = {entry.epoch: entry.start_offset for entry in known if entry.epoch in with_data}
    told = f"{log.partition}: cached {log.epochs.entries()}, in the log {with_data}"
    if is_dense:
        assert found == with_data, told
    else:
        assert found.keys() == with_data.keys(), told
        assert all(found[epoch] <= start for epoch, start in with_data.items()), told


def _check_producers(log: Log) -> None:
    """State kept while appending, and state read from every batch, are the same (but for old batches)."""
    rebuilt = ProducerState(log.segments[0].base_offset)
    for segment in log.segments:
        replay(rebuilt, segment, log.end_offset)
    if log.log_start_offset > log.segments[0].base_offset or log.segments[0].base_offset > 0:
        return
    kept, found = facts_of(log.producers.state), facts_of(rebuilt)
    assert kept == found, f"{log.partition}: kept {kept}, in the log {found}"


def facts_of(state: ProducerState) -> dict[int, tuple[object, ...]]:
    """What a snapshot keeps of each producer, but for times, which compaction and markers change."""
    return {producer_id: _facts(producer) for producer_id, producer in state.producers.items()}


def _facts(producer: Producer) -> tuple[object, ...]:
    return (
        producer.epoch,
        [batch[:3] for batch in producer.batches[-1:]],
        producer.coordinator_epoch,
        producer.txn_first_offset,
    )
