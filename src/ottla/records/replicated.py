"""Batches that a follower fetched from its leader: check them before they are appended unchanged."""

from ottla.records.batch import BatchHeader, CorruptRecords, batches, crc_is_valid
from ottla.records.control import read_end_marker


def check_replicated(view: memoryview, leader_epoch: int | None) -> list[BatchHeader]:
    """The headers of the whole batches, up to the first of an epoch above ``leader_epoch``.

    Raises ``CorruptRecords`` for a wrong checksum, offsets out of order or a malformed control batch.
    """
    headers: list[BatchHeader] = []
    last_offset = -1
    for header in batches(view):
        if leader_epoch is not None and header.partition_leader_epoch > leader_epoch:
            break
        if not crc_is_valid(view, header):
            raise CorruptRecords(f"the batch at offset {header.base_offset} fails its checksum")
        if header.base_offset <= last_offset or header.last_offset_delta < 0:
            raise CorruptRecords(f"offset {header.base_offset} does not follow {last_offset}")
        if header.is_control:
            read_end_marker(view, header)  # a malformed one must not get into the log
        last_offset = header.last_offset
        headers.append(header)
    return headers
