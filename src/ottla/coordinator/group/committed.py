"""The offsets that a group committed, kept in the bytes of their records.

A coordinator holds millions of them and is asked for a few. As bytes they cost a third of the memory, the
garbage collector never looks at them, and a load is a walk that decodes nothing.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from struct import Struct

from ottla.coordinator.group.effects import StoredRecord
from ottla.model.ids import TopicPartition
from ottla.wire.stored import OffsetCommitValue, decode_stored

_LENGTH = Struct(">h")
_PARTITION = Struct(">i")
KEY_HEAD_BYTES = 4
"""Version and the length of the group's name: what stands before the name in a key."""

PARTITION_BYTES = 4


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """What a group committed for one partition."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int = -1


class CommittedOffsets(Mapping[TopicPartition, CommittedOffset]):
    """By partition; ``stored`` is by what stands in a key behind the group's name: topic and partition."""

    __slots__ = ("_stored",)

    def __init__(self, stored: dict[bytes, bytes] | None = None) -> None:
        self._stored: dict[bytes, bytes] = {} if stored is None else stored

    def keep(self, record: StoredRecord) -> None:
        """Take a commit, as it was written."""
        assert record.value is not None, "a tombstone is no commit"
        (name_bytes,) = _LENGTH.unpack_from(record.key, KEY_HEAD_BYTES - _LENGTH.size)
        self._stored[record.key[KEY_HEAD_BYTES + name_bytes :]] = record.value

    def __getitem__(self, tp: TopicPartition) -> CommittedOffset:
        return _decode(self._stored[_stored_partition(tp)])

    def __contains__(self, tp: object) -> bool:
        return isinstance(tp, TopicPartition) and _stored_partition(tp) in self._stored

    def __delitem__(self, tp: TopicPartition) -> None:
        del self._stored[_stored_partition(tp)]

    def held_of(self, partitions: Mapping[bytes, TopicPartition]) -> list[TopicPartition]:
        """Those of these partitions (see ``by_stored_form``) that have an offset here."""
        if partitions.keys().isdisjoint(self._stored.keys()):  # two views: the shorter one is walked
            return []
        return [tp for stored, tp in partitions.items() if stored in self._stored]

    def __iter__(self) -> Iterator[TopicPartition]:
        for key in self._stored:
            topic = str(key[_LENGTH.size : -PARTITION_BYTES], "utf-8")
            yield TopicPartition(topic, _PARTITION.unpack_from(key, len(key) - PARTITION_BYTES)[0])

    def __len__(self) -> int:
        return len(self._stored)


def by_stored_form(partitions: Iterable[TopicPartition]) -> dict[bytes, TopicPartition]:
    """Partitions by the bytes they have in keys: for a question put to many groups."""
    return {_stored_partition(tp): tp for tp in partitions}


def _stored_partition(tp: TopicPartition) -> bytes:
    topic = tp.topic.encode()
    return _LENGTH.pack(len(topic)) + topic + _PARTITION.pack(tp.partition)


def _decode(value: bytes) -> CommittedOffset:
    stored = decode_stored(OffsetCommitValue, value)
    return CommittedOffset(
        offset=stored.offset,
        leader_epoch=stored.leader_epoch,
        metadata=stored.metadata,
        commit_timestamp_ms=stored.commit_timestamp,
        expire_timestamp_ms=stored.expire_timestamp,
    )
