"""Record batches through Kafka's own code, and the same description of them by ours, ready to be compared."""

from __future__ import annotations

import json
from typing import Any

from ottla.records.batch import BatchHeader, batches, crc_is_valid
from ottla.records.compression import CODEC_NAMES
from ottla.records.control import read_end_marker
from ottla.records.record import Record, read_records
from support.processes.java_harness import java_harness

Description = dict[str, Any]
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_NAMES = {codec.value: name for name, codec in CODEC_NAMES.items() if codec is not None and name in CODECS}


def built_by_java(**batch: Any) -> bytes:
    """A batch that Kafka's MemoryRecordsBuilder makes of a description."""
    return java_harness("RecordsOracle").call("build", json.dumps(batch).encode())


def described_by_java(data: bytes | bytearray | memoryview) -> list[Description]:
    """What Kafka reads in these bytes; JavaError when it refuses them."""
    batches_read: list[Description] = json.loads(java_harness("RecordsOracle").call("describe", data))
    return batches_read


def described_by_us(data: bytes | bytearray | memoryview) -> list[Description]:
    """What Ottla reads in these bytes, in the words of the Java oracle."""
    view = memoryview(data)
    return [_describe(view, header) for header in batches(view)]


def _describe(view: memoryview, header: BatchHeader) -> Description:
    assert crc_is_valid(view, header), f"the CRC of the batch at {header.position} is wrong"
    marker = read_end_marker(view, header) if header.is_control else None
    records = []
    for record in read_records(view, header):
        description = _describe_record(record)
        if marker is not None:
            description["control_type"] = "COMMIT" if marker.is_commit else "ABORT"
        records.append(description)
    horizon = header.delete_horizon_ms
    return {
        "magic": header.magic,
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "size": header.size,
        "leader_epoch": header.partition_leader_epoch,
        "crc": header.crc,
        "codec": _NAMES[header.codec_id],
        "log_append_time": header.is_log_append_time,
        "base_timestamp": header.base_timestamp,
        "max_timestamp": header.max_timestamp,
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "base_sequence": header.base_sequence,
        "last_sequence": header.last_sequence,
        "transactional": header.is_transactional,
        "control": header.is_control,
        "delete_horizon_ms": -1 if horizon is None else horizon,
        "count": header.record_count,
        "records": records,
    }


def _describe_record(record: Record) -> Description:
    return {
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": _hex(record.key),
        "value": _hex(record.value),
        "headers": [[name, _hex(value)] for name, value in record.headers],
    }


def _hex(part: bytes | None) -> str | None:
    return None if part is None else part.hex()
