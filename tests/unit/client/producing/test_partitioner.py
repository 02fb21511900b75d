"""Keys go where Kafka's Java client would send them; records without a key stay together for a batch."""

from random import Random

import pytest

from ottla.client.engine.metadata import PartitionInfo, TopicInfo
from ottla.client.producing.partitioner import StickyPartitions, murmur2, partition_of_key

# From Kafka's own tests of its hash.
JAVA_HASHES = [
    (b"21", -973932308),
    (b"foobar", -790332482),
    (b"a-little-bit-long-string", -985981536),
    (b"a-little-bit-longer-string", -1486304829),
    (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
    (b"abc", 479470107),
]


@pytest.mark.parametrize(("key", "java_hash"), JAVA_HASHES)
def test_the_hash_is_javas(key: bytes, java_hash: int) -> None:
    assert murmur2(key) == java_hash & 0xFFFF_FFFF


def test_the_sign_bit_of_the_hash_does_not_count() -> None:
    assert partition_of_key(b"21", 10) == (-973932308 & 0x7FFF_FFFF) % 10


def a_topic(leaders: list[int]) -> TopicInfo:
    partitions = {n: PartitionInfo(leader, 0, (1,), (1,)) for n, leader in enumerate(leaders)}
    return TopicInfo("orders", bytes(16), 0, partitions)


def test_records_without_a_key_stay_with_a_partition_until_it_has_had_a_batch() -> None:
    sticky = StickyPartitions(batch_bytes=100, random=Random(1))
    topic = a_topic([1, 1, 1])

    chosen = [sticky.choose(topic, 50) for _ in range(6)]

    assert chosen[0] == chosen[1]
    assert chosen[2] == chosen[3] != chosen[1]
    assert chosen[4] == chosen[5] != chosen[3]


def test_only_partitions_with_a_leader_are_chosen() -> None:
    sticky = StickyPartitions(batch_bytes=1, random=Random(1))

    assert {sticky.choose(a_topic([-1, 2, -1]), 50) for _ in range(20)} == {1}


def test_a_partition_that_lost_its_leader_is_left() -> None:
    sticky = StickyPartitions(batch_bytes=10**9, random=Random(1))
    first = sticky.choose(a_topic([1, 2]), 50)
    leaders = [1, 2]
    leaders[first] = -1

    assert sticky.choose(a_topic(leaders), 50) == 1 - first


def test_without_any_leader_some_partition_is_still_chosen() -> None:
    assert StickyPartitions(1, Random(1)).choose(a_topic([-1]), 50) == 0
