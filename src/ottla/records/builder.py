"""Build batches: for the client, for coordinators' records, and for rewriting (compression, compaction)."""

from collections.abc import Iterable

from ottla.records.batch import (
    CONTROL_BIT,
    HEADER_SIZE,
    LOG_APPEND_TIME_BIT,
    LOG_OVERHEAD,
    MAGIC,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL_BIT,
    BatchHeader,
    Buffer,
    seal,
    write_header,
)
from ottla.records.compression import Codec, compress
from ottla.records.record import Record, write_record

NO_EPOCH = -1


def build_batch(
    records: Iterable[Record],
    *,
    base_offset: int = 0,
    codec: Codec = Codec.NONE,
    leader_epoch: int = NO_EPOCH,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    is_transactional: bool = False,
    is_control: bool = False,
    log_append_time_ms: int | None = None,
) -> bytearray:
    """One batch of these records, offsets counted up from ``base_offset``."""
    area = bytearray()
    count = 0
    base_timestamp = max_timestamp = NO_TIMESTAMP
    for record in records:
        if count == 0:
            base_timestamp = max_timestamp = record.timestamp
        max_timestamp = max(max_timestamp, record.timestamp)
        write_record(area, record.timestamp - base_timestamp, count, record.key, record.value, record.headers)
        count += 1
    attributes = _attributes(codec, is_transactional, is_control, log_append_time_ms is not None)
    header = BatchHeader(
        position=0,
        base_offset=base_offset,
        length=0,
        partition_leader_epoch=leader_epoch,
        magic=MAGIC,
        crc=0,
        attributes=attributes,
        last_offset_delta=count - 1,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp if log_append_time_ms is None else log_append_time_ms,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        record_count=count,
    )
    return assemble(header, area, codec)


def assemble(header: BatchHeader, area: Buffer, codec: Codec) -> bytearray:
    """A sealed batch of a plain records area under a header's fields; its length is computed."""
    content = area if codec == Codec.NONE else compress(codec, area)
    batch = bytearray(HEADER_SIZE + len(content))
    batch[HEADER_SIZE:] = content
    attributes = header.attributes & ~7 | codec
    write_header(
        batch, header._replace(position=0, length=len(batch) - LOG_OVERHEAD, attributes=attributes, crc=0)
    )
    seal(batch, 0, len(batch))
    return batch


def _attributes(codec: Codec, is_transactional: bool, is_control: bool, is_log_append_time: bool) -> int:
    return (
        int(codec)
        | (LOG_APPEND_TIME_BIT if is_log_append_time else 0)
        | (TRANSACTIONAL_BIT if is_transactional else 0)
        | (CONTROL_BIT if is_control else 0)
    )
