"""Open a partition's directory: tidy up, find the segments, and after a crash trust nothing unsynced."""

from ottla.config.log import LogConfig
from ottla.model.ids import TopicId, TopicPartition
from ottla.records.batch import HEADER_SIZE, BatchHeader, CorruptRecords, crc_is_valid, read_header
from ottla.storage import offset_index, time_index, txn_index
from ottla.storage.checkpoints import PARTITION_METADATA, CorruptCheckpoint, decode_partition_metadata
from ottla.storage.disk import DirectoryEntry
from ottla.storage.log import Log
from ottla.storage.log_directory import DELETED_SUFFIX, LogDirectory, PartitionHome
from ottla.storage.producer_rebuild import newest_sound_snapshot, replay, snapshot_offsets
from ottla.storage.producer_state import SUFFIX as SNAPSHOT_SUFFIX
from ottla.storage.producer_state import ProducerState
from ottla.storage.segment import LOG_SUFFIX, RELATIVE_OFFSET_MAX, Segment

CLEANED_SUFFIX = ".cleaned"
SWAP_SUFFIX = ".swap"
INDEX_SUFFIXES = (offset_index.SUFFIX, time_index.SUFFIX, txn_index.SUFFIX)


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
    holes_are_losses: bool = False,
    now_ms: int,
) -> Log:
    """The log in an existing partition directory. Raises ``OSError`` where the disk does.

    ``holes_are_losses``: Ottla wrote the tail, and vouched for every hole between segments that is meant.
    """
    home = PartitionHome(directory, partition, f"{directory.path}/{name or partition}")
    entries = {entry.name: entry for entry in directory.disk.list_directory(home.path)}
    _tidy(home, entries)
    segments = _segments(home, entries)
    _remove_stray_snapshots(home, entries, segments)
    if segments and not was_clean:
        _recover_from(
            home,
            segments,
            recovery_point,
            first_dirty_offset if config.is_compacted else 0,
            config,
            must_join=holes_are_losses and not _was_kafkas(entries, segments[-1]),
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


# -- tidy up -------------------------------------------------------------------------------------------


def _tidy(home: PartitionHome, entries: dict[str, DirectoryEntry]) -> None:
    """Remove what was to be deleted or was left half done; finish a compaction that was to be swapped in."""
    disk = home.directory.disk

    def remove(name: str) -> None:
        disk.remove(f"{home.path}/{name}")
        del entries[name]

    for name in [name for name in entries if name.endswith((DELETED_SUFFIX, ".tmp"))]:
        remove(name)
    cleaned = [name for name in entries if name.endswith(CLEANED_SUFFIX)]
    lowest_cleaned = min((_base_of(name) for name in cleaned), default=None)
    for name in cleaned:
        remove(name)
    for name in [name for name in entries if name.endswith(SWAP_SUFFIX)]:
        if lowest_cleaned is not None and _base_of(name) >= lowest_cleaned:
            remove(name)
    _finish_swaps(home, entries)
    for name in list(entries):
        stem, dot, suffix = name.partition(".")
        if dot and dot + suffix in INDEX_SUFFIXES and stem + LOG_SUFFIX not in entries:
            remove(name)


def _finish_swaps(home: PartitionHome, entries: dict[str, DirectoryEntry]) -> None:
    """A complete compacted segment replaces every segment in its range, then loses its suffix."""
    disk = home.directory.disk
    for name in sorted(name for name in entries if name.endswith(LOG_SUFFIX + SWAP_SUFFIX)):
        base_offset = _base_of(name)
        end_offset = _end_of_swap(home, name, base_offset, entries[name].size)
        if end_offset is None:
            _remove_swap(home, entries, base_offset)
            continue
        for other in sorted(name for name in entries if name.endswith(LOG_SUFFIX)):
            if base_offset <= _base_of(other) < max(end_offset, base_offset + 1):
                for suffix in (LOG_SUFFIX, *INDEX_SUFFIXES):
                    gone = other.removesuffix(LOG_SUFFIX) + suffix
                    if gone in entries:
                        disk.remove(f"{home.path}/{gone}")
                        del entries[gone]
    swaps = [name for name in entries if name.endswith(SWAP_SUFFIX)]
    for name in swaps:
        plain = name.removesuffix(SWAP_SUFFIX)
        disk.rename(f"{home.path}/{name}", f"{home.path}/{plain}")
        entries[plain] = entries.pop(name)._replace(name=plain)
    if swaps:
        disk.sync_directory(home.path)


def _end_of_swap(home: PartitionHome, name: str, base_offset: int, size: int) -> int | None:
    """The offset behind a compacted segment's last batch; ``None`` if it is not sound."""
    file = home.directory.open(f"{home.path}/{name}")
    end_offset, position = base_offset, 0
    try:
        while position < size:
            header = read_header(file.pread(HEADER_SIZE, position))
            content = file.pread(header.size, position)
            if len(content) != header.size or not crc_is_valid(content, header):
                return None
            end_offset, position = header.end_offset, position + header.size
    except CorruptRecords:
        return None
    return end_offset


def _remove_swap(home: PartitionHome, entries: dict[str, DirectoryEntry], base_offset: int) -> None:
    """A compacted segment that is not sound gives way to the originals."""
    for suffix in (LOG_SUFFIX, *INDEX_SUFFIXES):
        name = f"{base_offset:020d}{suffix}{SWAP_SUFFIX}"
        if name in entries:
            home.directory.disk.remove(f"{home.path}/{name}")
            del entries[name]


def _base_of(name: str) -> int:
    stem = name.partition(".")[0]
    return int(stem) if stem.isdecimal() else 0


def _remove_stray_snapshots(
    home: PartitionHome, entries: dict[str, DirectoryEntry], segments: list[Segment]
) -> None:
    """Producer snapshots belong to the base of a segment; of the others only the newest is of use."""
    names = sorted(name for name in entries if name.endswith(SNAPSHOT_SUFFIX))
    bases = {f"{segment.base_offset:020d}{SNAPSHOT_SUFFIX}" for segment in segments}
    for name in names[:-1]:
        if name not in bases:
            home.directory.disk.remove(f"{home.path}/{name}")
            del entries[name]


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
    """Finish a deletion that was begun: segments wholly below the log start go, oldest first."""
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
    """Check every batch from the segment of the recovery point on; drop all behind the first bad one.

    Our segments begin where the one before ended, or the recovery point vouches for the hole; so another
    hole means that an unsynced tail was lost, except where compaction has been. Kafka's need not join.
    """
    first = max((at for at, each in enumerate(segments) if each.base_offset < recovery_point), default=0)
    disk = home.directory.disk
    _remove_snapshots_inside(home, segments, first)
    for at in range(first, len(segments)):
        following = segments[at + 1].base_offset if at + 1 < len(segments) else None
        end_offset = recover_segment(segments[at], following, config.index_interval_bytes)
        has_hole = (
            must_join
            and end_offset is not None
            and following is not None
            and end_offset < following > max(compacted_to, recovery_point)
        )
        if end_offset is None or has_hole:
            for lost in reversed(segments[at + 1 :]):
                for path in lost.rename_to_deleted():
                    disk.remove(path)
            del segments[at + 1 :]
            disk.sync_directory(home.path)
            break
    _rebuild_aborted(home, segments[first:])


def _remove_snapshots_inside(home: PartitionHome, segments: list[Segment], first: int) -> None:
    """What was known of producers inside a segment that is scanned again says nothing more."""
    bases = {segment.base_offset for segment in segments}
    for offset in snapshot_offsets(home):
        if offset > segments[first].base_offset and offset not in bases:
            home.directory.disk.remove(home.file(offset, SNAPSHOT_SUFFIX))


def _was_kafkas(entries: dict[str, DirectoryEntry], active: Segment) -> bool:
    """A running Kafka stretches the index of its active segment beyond all need, we never do."""
    index = entries.get(f"{active.base_offset:020}{offset_index.SUFFIX}")
    return index is not None and index.size // offset_index.ENTRY_SIZE > active.size // HEADER_SIZE + 1


def recover_segment(segment: Segment, next_base_offset: int | None, interval_bytes: int) -> int | None:
    """Keep the sound batches of a segment and index them anew.

    The offset behind the last batch, or ``None`` if anything had to be cut off.
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
    state = newest_sound_snapshot(home, found) or ProducerState(base_offset)
    for segment in recovered:
        segment.save_aborted(replay(state, segment, segment.base_offset + RELATIVE_OFFSET_MAX))


# -- where the log ends --------------------------------------------------------------------------------


def _end_offset(segments: list[Segment], config: LogConfig) -> int:
    """The offset behind the last batch; looks only at the tail of the last segment."""
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
    """The position in the last index entry, if it can be one."""
    try:
        file = segment.home.directory.open(segment.path(offset_index.SUFFIX))
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
    """An empty log at ``offset``: there was none, or all of it lies below the log start."""
    for segment in reversed(segments):
        for path in segment.rename_to_deleted():
            home.directory.disk.remove(path)
    segment = Segment(home, offset, created_ms=now_ms, modified_ms=now_ms)
    segment.create()
    home.directory.disk.sync_directory(home.path)
    segments[:] = [segment]
    return offset
