"""The offsets that a group committed, kept as the bytes of their records.

A coordinator holds millions of offsets and is asked for a few. As bytes they need a third of the memory, the
garbage collector does not visit them, and a load decodes none of them.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from struct import Struct

from ottla.model.ids import TopicPartition
from ottla.wire.stored import OffsetCommitValue, decode_stored

_LENGTH = Struct(">h")
_PARTITION = Struct(">i")
KEY_HEAD_BYTES = 4
"""A key begins with its version and the length of the group's name."""

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
    """By partition. ``stored`` has the bytes of topic and partition as in the record's key, and its value."""

    __slots__ = ("stored",)

    def __init__(self) -> None:
        self.stored: dict[bytes, bytes] = {}

    def __getitem__(self, tp: TopicPartition) -> CommittedOffset:
        return _decode(self.stored[_stored_partition(tp)])

    def __contains__(self, tp: object) -> bool:
        return isinstance(tp, TopicPartition) and _stored_partition(tp) in self.stored

    def held_of(self, partitions: Mapping[bytes, TopicPartition]) -> list[TopicPartition]:
        """Those of these partitions (see ``by_stored_form``) that have an offset here."""
        if partitions.keys().isdisjoint(self.stored.keys()):  # iterates over the shorter of the two
            return []
        return [tp for stored, tp in partitions.items() if stored in self.stored]

    def __iter__(self) -> Iterator[TopicPartition]:
        for key in self.stored:
            topic = str(key[_LENGTH.size : -PARTITION_BYTES], "utf-8")
            yield TopicPartition(topic, _PARTITION.unpack_from(key, len(key) - PARTITION_BYTES)[0])

    def __len__(self) -> int:
        return len(self.stored)


def by_stored_form(partitions: Iterable[TopicPartition]) -> dict[bytes, TopicPartition]:
    """Partitions by their bytes in keys, to be looked up in many groups."""
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
