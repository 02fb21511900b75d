"""Open a partition's directory: find its segments, and check what was not synced before a crash."""

from ottla.config.log import LogConfig
from ottla.model.ids import TopicId, TopicPartition
from ottla.records.batch import HEADER_SIZE, BatchHeader, CorruptRecords, crc_is_valid, read_header
from ottla.storage.disk.checkpoints import PARTITION_METADATA, CorruptCheckpoint, decode_partition_metadata
from ottla.storage.disk.directory import LogDirectory, PartitionHome
from ottla.storage.disk.file_names import LOG_SUFFIX, OFFSET_INDEX_SUFFIX, SNAPSHOT_SUFFIX
from ottla.storage.disk.port import DirectoryEntry
from ottla.storage.log.leftovers import remove_leftovers, remove_stray_snapshots
from ottla.storage.log.log import Log
from ottla.storage.producers.replay import replay
from ottla.storage.producers.snapshots import newest_readable_snapshot, snapshot_offsets
from ottla.storage.producers.state import ProducerState
from ottla.storage.segment.offset_index import ENTRY_SIZE
from ottla.storage.segment.segment import RELATIVE_OFFSET_MAX, Segment


def create_log(
    directory: LogDirectory,
    partition: TopicPartition,
    config: LogConfig,
    *,
    topic_id: TopicId | None = None,
    now_ms: int,
) -> Log:
    """Make a new partition's directory with an empty log that begins at 0; the first flush syncs it."""
    home = PartitionHome(directory, partition, f"{directory.path}/{partition}")
    directory.disk.make_directory(home.path)
    segment = Segment(home, 0, created_ms=now_ms, modified_ms=now_ms)
    segment.create()
    segment.close_file()
    log = Log(home, config, [segment], log_start_offset=0, end_offset=0, recovery_point=0)
    log.note_created()
    if topic_id is not None:
        log.assign_topic_id(topic_id)
    return log


def open_log(
    directory: LogDirectory,
    partition: TopicPartition,
    config: LogConfig,
    *,
    name: str | None = None,
    was_clean: bool,
    recovery_point: int = 0,
    log_start_offset: int = 0,
    high_watermark: int = 0,
    first_dirty_offset: int = 0,
    gaps_are_losses: bool = False,
    now_ms: int,
) -> Log:
    """The log in an existing partition directory. Raises ``OSError`` where the disk does.

    ``gaps_are_losses``: Ottla wrote the log, so a gap between segments above the recovery point is a loss.
    """
    home = PartitionHome(directory, partition, f"{directory.path}/{name or partition}")
    entries = {entry.name: entry for entry in directory.disk.list_directory(home.path)}
    remove_leftovers(home, entries)
    segments = _segments(home, entries)
    remove_stray_snapshots(home, entries, segments)
    if segments and not was_clean:
        _recover_from(
            home,
            segments,
            recovery_point,
            first_dirty_offset if config.is_compacted else 0,
            config,
            must_join=gaps_are_losses and not _was_written_by_kafka(entries, segments[-1]),
        )
    end_offset = _end_offset(segments, config)
    if not segments or end_offset < log_start_offset:
        end_offset = _begin_anew(home, segments, log_start_offset, now_ms)
    _drop_below(home, segments, log_start_offset)
    log_start_offset = max(log_start_offset, segments[0].base_offset)
    log = Log(
        home,
        config,
        segments,
        log_start_offset=log_start_offset,
        end_offset=end_offset,
        recovery_point=end_offset if was_clean else min(recovery_point, end_offset),
        high_watermark=high_watermark,
        topic_id=_topic_id(home) if PARTITION_METADATA in entries else None,
        was_clean=was_clean,
    )
    log.first_dirty_offset = first_dirty_offset
    if not was_clean:
        log.settle_after_crash()
    return log


def _topic_id(home: PartitionHome) -> TopicId | None:
    try:
        return decode_partition_metadata(home.directory.disk.read_file(f"{home.path}/{PARTITION_METADATA}"))
    except CorruptCheckpoint:
        return None


def _segments(home: PartitionHome, entries: dict[str, DirectoryEntry]) -> list[Segment]:
    found = []
    for name, entry in entries.items():
        stem = name.removesuffix(LOG_SUFFIX)
        if name.endswith(LOG_SUFFIX) and len(stem) == 20 and stem.isdecimal():
            modified_ms = entry.modified_ms
            found.append(
                Segment(home, int(stem), size=entry.size, created_ms=modified_ms, modified_ms=modified_ms)
            )
    found.sort(key=lambda segment: segment.base_offset)
    return found


def _drop_below(home: PartitionHome, segments: list[Segment], log_start_offset: int) -> None:
    """Delete segments that are wholly below the log start, oldest first."""
    while len(segments) > 1 and segments[1].base_offset <= log_start_offset:
        for path in segments.pop(0).rename_to_deleted():
            home.directory.disk.remove(path)


# -- after a crash -------------------------------------------------------------------------------------


def _recover_from(
    home: PartitionHome,
    segments: list[Segment],
    recovery_point: int,
    compacted_to: int,
    config: LogConfig,
    *,
    must_join: bool,
) -> None:
    """Check every batch from the recovery point's segment on; drop everything behind the first invalid one.

    ``must_join``: a gap between two segments means that an unsynced tail was lost, unless it is below the
    recovery point or in the compacted part. Segments that Kafka wrote may have such gaps.
    """
    first = max((at for at, each in enumerate(segments) if each.base_offset < recovery_point), default=0)
    disk = home.directory.disk
    _remove_snapshots_inside(home, segments, first)
    for at in range(first, len(segments)):
        following = segments[at + 1].base_offset if at + 1 < len(segments) else None
        end_offset = recover_segment(segments[at], following, config.index_interval_bytes)
        has_gap = (
            must_join
            and end_offset is not None
            and following is not None
            and end_offset < following > max(compacted_to, recovery_point)
        )
        if end_offset is None or has_gap:
            for lost in reversed(segments[at + 1 :]):
                for path in lost.rename_to_deleted():
                    disk.remove(path)
            del segments[at + 1 :]
            disk.sync_directory(home.path)
            break
    _rebuild_aborted(home, segments[first:])


def _remove_snapshots_inside(home: PartitionHome, segments: list[Segment], first: int) -> None:
    """Remove snapshots inside segments that are scanned again: they may not match what is left."""
    bases = {segment.base_offset for segment in segments}
    for offset in snapshot_offsets(home):
        if offset > segments[first].base_offset and offset not in bases:
            home.directory.disk.remove(home.file(offset, SNAPSHOT_SUFFIX))


def _was_written_by_kafka(entries: dict[str, DirectoryEntry], active: Segment) -> bool:
    """Kafka preallocates the index of its active segment; we never do."""
    index = entries.get(f"{active.base_offset:020}{OFFSET_INDEX_SUFFIX}")
    return index is not None and index.size // ENTRY_SIZE > active.size // HEADER_SIZE + 1


def recover_segment(segment: Segment, next_base_offset: int | None, interval_bytes: int) -> int | None:
    """Keep the valid batches of a segment and rebuild its indexes.

    Returns the end offset, or ``None`` if anything had to be cut off.
    """
    segment.begin_rebuild()
    good_end, last_offset = 0, segment.base_offset - 1
    try:
        for header in segment.scan(0):
            if not _is_sound(segment, header, last_offset, next_base_offset):
                break
            segment.note(header, header.position, interval_bytes)
            good_end, last_offset = header.end_position, header.last_offset
    except CorruptRecords:
        pass
    segment.bytes_since_entry = 0
    if good_end == segment.size:
        return last_offset + 1
    segment.cut_at(good_end)
    return None


def _is_sound(segment: Segment, header: BatchHeader, last_offset: int, next_base_offset: int | None) -> bool:
    if header.base_offset <= last_offset or header.last_offset_delta < 0:
        return False
    if header.last_offset - segment.base_offset > RELATIVE_OFFSET_MAX:
        return False
    if next_base_offset is not None and header.last_offset >= next_base_offset:
        return False
    content = segment.file().pread(header.size, header.position)
    return len(content) == header.size and crc_is_valid(content, read_header(content))


def _rebuild_aborted(home: PartitionHome, recovered: list[Segment]) -> None:
    """The transaction indexes of recovered segments, from their batches."""
    base_offset = recovered[0].base_offset
    found = [offset for offset in snapshot_offsets(home) if offset <= base_offset]
    state = newest_readable_snapshot(home, found) or ProducerState(base_offset)
    for segment in recovered:
        segment.save_aborted(replay(state, segment, segment.base_offset + RELATIVE_OFFSET_MAX))


# -- where the log ends --------------------------------------------------------------------------------


def _end_offset(segments: list[Segment], config: LogConfig) -> int:
    """The log's end offset; reads only the tail of the last segment."""
    if not segments:
        return 0
    last = segments[-1]
    if last.size == 0:
        return last.base_offset
    try:
        found = _last_batch(last, _last_indexed_position(last))
        if found is not None and found.end_position == last.size:
            last.close_file()
            return found.end_offset
    except CorruptRecords:
        pass
    recover_segment(last, None, config.index_interval_bytes)
    found = _last_batch(last, 0)
    return last.base_offset if found is None else found.end_offset


def _last_indexed_position(segment: Segment) -> int:
    """The position in the last entry of the offset index, or 0 if that is invalid."""
    try:
        file = segment.home.directory.open(segment.path(OFFSET_INDEX_SUFFIX))
    except FileNotFoundError:
        return 0
    size = file.size()
    content = file.pread(8, size - 8) if size >= 8 and size % 8 == 0 else b""
    position = int.from_bytes(content[4:8], "big", signed=True) if len(content) == 8 else 0
    return position if 0 <= position < segment.size else 0


def _last_batch(segment: Segment, position: int) -> BatchHeader | None:
    last = None
    for header in segment.scan(position):
        last = header
    return last


def _begin_anew(home: PartitionHome, segments: list[Segment], offset: int, now_ms: int) -> int:
    """Begin an empty log at ``offset``: there was none, or all of it is below the log start."""
    for segment in reversed(segments):
        for path in segment.rename_to_deleted():
            home.directory.disk.remove(path)
    segment = Segment(home, offset, created_ms=now_ms, modified_ms=now_ms)
    segment.create()
    home.directory.disk.sync_directory(home.path)
    segments[:] = [segment]
    return offset
