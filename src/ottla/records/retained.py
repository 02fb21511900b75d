"""Rewrite a batch without some of its records, as compaction does.

Base and last offset, producer, epoch and sequence stay; so a producer's place in the log is never lost.
"""

from ottla.records.batch import (
    CODEC_MASK,
    DELETE_HORIZON_BIT,
    NO_TIMESTAMP,
    BatchHeader,
    Buffer,
)
from ottla.records.builder import assemble
from ottla.records.compression import Codec, codec_of
from ottla.records.record import RecordFrame, as_long, copy_with_timestamp_delta


def rewrite_retained(
    header: BatchHeader, area: Buffer, kept: list[RecordFrame], delete_horizon_ms: int | None
) -> bytearray:
    """The batch with only ``kept`` of its records, under a delete horizon if there is one."""
    area = bytes(area)
    times = [_time_of(header, frame) for frame in kept]
    base_timestamp = delete_horizon_ms if delete_horizon_ms is not None else times[0]
    plain = bytearray()
    for frame, timestamp in zip(kept, times, strict=True):
        copy_with_timestamp_delta(plain, area, frame, as_long(timestamp - base_timestamp))
    attributes = header.attributes & ~DELETE_HORIZON_BIT
    if delete_horizon_ms is not None:
        attributes |= DELETE_HORIZON_BIT
    changed = header._replace(
        attributes=attributes,
        base_timestamp=base_timestamp,
        max_timestamp=header.max_timestamp if header.is_log_append_time else max(times),
        record_count=len(kept),
    )
    return assemble(changed, plain, codec_of(header.attributes))


def _time_of(header: BatchHeader, frame: RecordFrame) -> int:
    if header.is_log_append_time:
        return header.max_timestamp
    return as_long(header.base_timestamp + frame.timestamp_delta)


def empty_batch(header: BatchHeader) -> bytearray:
    """The batch without any record, kept for its producer's sequence or the log's last offset."""
    changed = header._replace(
        attributes=header.attributes & ~(CODEC_MASK | DELETE_HORIZON_BIT),
        base_timestamp=NO_TIMESTAMP,
        record_count=0,
    )
    return assemble(changed, b"", Codec.NONE)
