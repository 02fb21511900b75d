"""Control batches: the markers that end a transaction on a partition."""

from dataclasses import dataclass
from struct import Struct

from ottla.records.batch import BatchHeader, Buffer, CorruptRecords
from ottla.records.builder import build_batch
from ottla.records.record import Record, read_records

ABORT = 0
COMMIT = 1

_KEY = Struct(">hh")
_VALUE = Struct(">hi")
CONTROL_BATCH_BYTES_MAX = 4096


@dataclass(frozen=True, slots=True)
class EndMarker:
    """The end of a producer's transaction, as the coordinator decided it."""

    is_commit: bool
    coordinator_epoch: int


def build_end_marker(
    *,
    producer_id: int,
    producer_epoch: int,
    is_commit: bool,
    coordinator_epoch: int,
    timestamp_ms: int,
    base_offset: int = 0,
    leader_epoch: int = -1,
) -> bytearray:
    """The control batch that ends a transaction."""
    key = _KEY.pack(0, COMMIT if is_commit else ABORT)
    value = _VALUE.pack(0, coordinator_epoch)
    return build_batch(
        [Record(key, value, timestamp=timestamp_ms)],
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        is_transactional=True,
        is_control=True,
    )


def read_end_marker(view: Buffer, header: BatchHeader) -> EndMarker | None:
    """The marker in a control batch; ``None`` if compaction emptied it or it is of another kind."""
    for record in read_records(view, header, CONTROL_BATCH_BYTES_MAX):
        return _marker_of(record)
    return None


def written_end_marker(view: Buffer, header: BatchHeader) -> EndMarker | None:
    """The same for a batch that is in a log already: a malformed marker is ignored."""
    try:
        return read_end_marker(view, header)
    except CorruptRecords:
        return None


def _marker_of(record: Record) -> EndMarker | None:
    if record.key is None or len(record.key) < _KEY.size:
        raise CorruptRecords("a control record without a type")
    version, kind = _KEY.unpack_from(record.key)
    if version < 0:
        raise CorruptRecords(f"a control record of version {version}")
    if kind not in (ABORT, COMMIT):
        return None
    if record.value is None or len(record.value) < _VALUE.size:
        raise CorruptRecords("an end marker without a coordinator epoch")
    return EndMarker(kind == COMMIT, _VALUE.unpack_from(record.value)[1])
