"""Leftovers in a partition's directory: files of deletions and compactions that a stop or crash cut short."""

from ottla.records.batch import HEADER_SIZE, CorruptRecords, crc_is_valid, read_header
from ottla.storage.disk.directory import PartitionHome
from ottla.storage.disk.file_names import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    INDEX_SUFFIXES,
    LOG_SUFFIX,
    SEGMENT_SUFFIXES,
    SNAPSHOT_SUFFIX,
    SWAP_SUFFIX,
    TEMPORARY_SUFFIX,
)
from ottla.storage.disk.port import DirectoryEntry
from ottla.storage.segment.segment import Segment


def remove_leftovers(home: PartitionHome, entries: dict[str, DirectoryEntry]) -> None:
    """Remove deleted and half-written files; finish a compaction whose segments were complete."""
    disk = home.directory.disk

    def remove(name: str) -> None:
        disk.remove(f"{home.path}/{name}")
        del entries[name]

    for name in [name for name in entries if name.endswith((DELETED_SUFFIX, TEMPORARY_SUFFIX))]:
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
    """Let each complete compacted segment replace the segments in its range, and remove its suffix."""
    disk = home.directory.disk
    for name in sorted(name for name in entries if name.endswith(LOG_SUFFIX + SWAP_SUFFIX)):
        base_offset = _base_of(name)
        end_offset = _end_of_swap(home, name, base_offset, entries[name].size)
        if end_offset is None:
            _remove_swap(home, entries, base_offset)
            continue
        for other in sorted(name for name in entries if name.endswith(LOG_SUFFIX)):
            if base_offset <= _base_of(other) < max(end_offset, base_offset + 1):
                for suffix in SEGMENT_SUFFIXES:
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
    """The end offset of a compacted segment; ``None`` if a batch in it is invalid."""
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
    """Remove an invalid compacted segment; the originals stay."""
    for suffix in SEGMENT_SUFFIXES:
        name = f"{base_offset:020d}{suffix}{SWAP_SUFFIX}"
        if name in entries:
            home.directory.disk.remove(f"{home.path}/{name}")
            del entries[name]


def _base_of(name: str) -> int:
    stem = name.partition(".")[0]
    return int(stem) if stem.isdecimal() else 0


def remove_stray_snapshots(
    home: PartitionHome, entries: dict[str, DirectoryEntry], segments: list[Segment]
) -> None:
    """Remove snapshots that are neither at the base of a segment nor the newest."""
    names = sorted(name for name in entries if name.endswith(SNAPSHOT_SUFFIX))
    bases = {f"{segment.base_offset:020d}{SNAPSHOT_SUFFIX}" for segment in segments}
    for name in names[:-1]:
        if name not in bases:
            home.directory.disk.remove(f"{home.path}/{name}")
            del entries[name]
