"""A record's partition: by the hash of its key, or a sticky one for records without a key."""

from random import Random

from ottla.client.engine.metadata import NO_LEADER, TopicInfo

_SEED = 0x9747_B28C
_M = 0x5BD1_E995
_MASK = 0xFFFF_FFFF


def murmur2(data: bytes) -> int:
    """The hash that Kafka's Java client takes of keys, as 32 unsigned bits."""
    length = len(data)
    h = _SEED ^ length
    for at in range(0, length & ~3, 4):
        k = int.from_bytes(data[at : at + 4], "little") * _M & _MASK
        k = (k ^ k >> 24) * _M & _MASK
        h = h * _M & _MASK ^ k
    tail = length & ~3
    if length & 3 == 3:
        h ^= data[tail + 2] << 16
    if length & 3 >= 2:
        h ^= data[tail + 1] << 8
    if length & 3 >= 1:
        h = (h ^ data[tail]) * _M & _MASK
    h = (h ^ h >> 13) * _M & _MASK
    return h ^ h >> 15


def partition_of_key(key: bytes, partition_count: int) -> int:
    """The same key always goes to the same partition, and to the one that Java's client would choose."""
    return (murmur2(key) & 0x7FFF_FFFF) % partition_count


class StickyPartitions:
    """Records without a key stay with one partition until it has had a batch's worth (KIP-794)."""

    def __init__(self, batch_bytes: int, random: Random) -> None:
        self._batch_bytes = batch_bytes
        self._random = random
        self._current: dict[str, tuple[int, int]] = {}
        """By topic: the partition, and how many bytes it has had."""

    def choose(self, topic: TopicInfo, record_bytes: int) -> int:
        """A partition that has a leader, if any has."""
        partition, taken = self._current.get(topic.name, (-1, 0))
        info = topic.partitions.get(partition)
        if info is None or info.leader == NO_LEADER or taken >= self._batch_bytes:
            with_leader = topic.partitions_with_leader()
            others = [number for number in with_leader if number != partition]
            partition = self._random.choice(others or with_leader or list(topic.partitions))
            taken = 0
        self._current[topic.name] = (partition, taken + record_bytes)
        return partition
