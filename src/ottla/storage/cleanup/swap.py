"""Put the result of a compaction in place, so that a crash at any step leaves the old or the new segments."""

from ottla.model.errors import InvariantBroken
from ottla.storage.cleanup.compaction import CleanedGroup, CompactionResult, discard
from ottla.storage.disk.file_names import CLEANED_SUFFIX, SEGMENT_SUFFIXES, SWAP_SUFFIX
from ottla.storage.log.log import Log
from ottla.storage.segment.segment import Segment


def swap_in(log: Log, result: CompactionResult) -> bool:
    """Replace the sources of the cleaned segments; False, and nothing done, if the log changed meanwhile."""
    segments = log.segments
    sources = [source.segment for group in result.groups for source in group.sources]
    directory = log.home.directory
    directory.check_online()
    try:
        if result.cuts != log.cuts or any(source not in segments[:-1] for source in sources):
            discard(result)
            return False
        for group in result.groups:
            _swap_group(log, group)
    except OSError as error:
        directory.fail(error)
    log.first_dirty_offset = result.first_dirty_offset
    return True


def _swap_group(log: Log, group: CleanedGroup) -> None:
    disk = log.home.directory.disk
    plain = [log.home.file(group.cleaned.base_offset, suffix) for suffix in SEGMENT_SUFFIXES]
    made = [path for path in plain if disk.exists(path + CLEANED_SUFFIX)]
    if not made:
        raise InvariantBroken(f"{log.partition} has no cleaned segment at {group.cleaned.base_offset}")
    for path in made:
        disk.rename(path + CLEANED_SUFFIX, path + SWAP_SUFFIX)
    disk.sync_directory(log.path)
    old = [source.segment for source in group.sources]
    for segment in reversed(old):
        for path in segment.rename_to_deleted(with_snapshot=segment is not old[0]):
            log.home.directory.discard(path, log.config.file_delete_delay_ms)
    disk.sync_directory(log.path)
    for path in made:
        disk.rename(path + SWAP_SUFFIX, path)
    disk.sync_directory(log.path)
    cleaned = group.cleaned
    log.replace_segments(
        old,
        Segment(
            log.home,
            cleaned.base_offset,
            size=cleaned.size,
            created_ms=cleaned.created_ms,
            modified_ms=cleaned.modified_ms,
        ),
    )
