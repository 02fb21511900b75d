"""Producer snapshots: Kafka's ``.snapshot`` files, each the producer state at one offset of a log."""

from struct import Struct

from ottla.records.batch import NO_SEQUENCE
from ottla.records.checksum import crc32c
from ottla.storage.disk.directory import PartitionHome
from ottla.storage.disk.file_names import SNAPSHOT_SUFFIX
from ottla.storage.producers.state import Producer, ProducerState, WrittenBatch

VERSION = 1
_HEADER = Struct(">hIi")
_CRC_STARTS_AT = 6
_PRODUCER = Struct(">qhiqiqiq")


class CorruptSnapshot(ValueError):
    """The file is no snapshot of producers."""


def encode_snapshot(state: ProducerState) -> bytes:
    """A snapshot's bytes; of each producer only the last batch is kept."""
    rows = [_encode_producer(producer_id, producer) for producer_id, producer in state.producers.items()]
    body = len(rows).to_bytes(4, "big") + b"".join(rows)
    return VERSION.to_bytes(2, "big") + crc32c(body).to_bytes(4, "big") + body


def _encode_producer(producer_id: int, producer: Producer) -> bytes:
    batches = producer.batches
    last = batches[-1] if batches else WrittenBatch(NO_SEQUENCE, -1, 0, producer.last_timestamp)
    return _PRODUCER.pack(
        producer_id,
        producer.epoch,
        last.last_sequence,
        last.last_offset,
        last.offset_delta,
        producer.last_timestamp,
        producer.coordinator_epoch,
        producer.txn_first_offset,
    )


def decode_snapshot(content: bytes, end_offset: int) -> ProducerState:
    """The state for records below ``end_offset``; raises ``CorruptSnapshot``."""
    if len(content) < _HEADER.size:
        raise CorruptSnapshot(f"{len(content)} bytes hold no snapshot")
    version, crc, count = _HEADER.unpack_from(content)
    if version != VERSION:
        raise CorruptSnapshot(f"a snapshot of version {version}")
    if crc32c(content[_CRC_STARTS_AT:]) != crc:
        raise CorruptSnapshot("a snapshot's checksum is wrong")
    if len(content) != _HEADER.size + count * _PRODUCER.size:
        raise CorruptSnapshot(f"{count} producers do not fit {len(content)} bytes")
    state = ProducerState(end_offset)
    state.snapshot_offset = end_offset
    for row in _PRODUCER.iter_unpack(content[_HEADER.size :]):
        producer_id, epoch, sequence, offset, delta, timestamp, coordinator_epoch, txn_first_offset = row
        producer = Producer(epoch)
        if offset >= 0:
            producer.batches = (WrittenBatch(sequence, offset, delta, timestamp),)
        producer.coordinator_epoch = coordinator_epoch
        producer.last_timestamp = timestamp
        producer.txn_first_offset = txn_first_offset
        state.restore(producer_id, producer)
    return state


def snapshot_offsets(home: PartitionHome) -> list[int]:
    """The offsets for which the partition's directory has a snapshot, rising."""
    names = [entry.name for entry in home.directory.disk.list_directory(home.path)]
    stems = [name.removesuffix(SNAPSHOT_SUFFIX) for name in names if name.endswith(SNAPSHOT_SUFFIX)]
    return sorted(int(stem) for stem in stems if len(stem) == 20 and stem.isdecimal())


def save_snapshot(home: PartitionHome, state: ProducerState, offset: int) -> None:
    """Write the state for records below ``offset``; there is none for offset 0."""
    state.snapshot_offset = offset
    if offset > 0:
        home.directory.disk.write_file(home.file(offset, SNAPSHOT_SUFFIX), encode_snapshot(state))


def delete_snapshots(home: PartitionHome, *, above: int | None = None, up_to: int | None = None) -> None:
    """Remove snapshots above, or up to, an offset: the log no longer has the records they stand for."""
    for offset in snapshot_offsets(home):
        if (above is not None and offset > above) or (up_to is not None and offset <= up_to):
            home.directory.disk.remove(home.file(offset, SNAPSHOT_SUFFIX))


def newest_readable_snapshot(home: PartitionHome, offsets: list[int]) -> ProducerState | None:
    """The state in the newest of these snapshots that can be read; newer ones that cannot are removed."""
    for offset in reversed(offsets):
        path = home.file(offset, SNAPSHOT_SUFFIX)
        try:
            return decode_snapshot(home.directory.disk.read_file(path), offset)
        except CorruptSnapshot:
            home.directory.disk.remove(path)
    return None
