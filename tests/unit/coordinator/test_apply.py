"""What a log of offsets and groups comes to, whatever stands in it."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.coordinator.group.core import GroupShard
from ottla.coordinator.group.group import Group
from ottla.coordinator.group.members import Member, Protocol
from ottla.coordinator.group.metadata import group_record
from ottla.coordinator.group.stored.committed import CommittedOffset, by_stored_form
from ottla.coordinator.group.stored.records import group_tombstone, offset_record, offset_tombstone
from ottla.coordinator.shard import StoredRecord
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.wire.consumer_protocol import ConsumerProtocolSubscription, encode_blob
from ottla.wire.stored import OffsetCommitKey, OffsetCommitValue, encode_stored
from unit.coordinator.test_many_groups import a_shard

ORDERS_0 = TopicPartition("orders", 0)
GROUP_IDS = ("g", "gg", "größe", "")
PARTITIONS = (
    ORDERS_0,
    TopicPartition("orders", 1),
    TopicPartition("orders-", 0),
    TopicPartition("ö", 2**31 - 1),
)
COMMITS = st.builds(
    CommittedOffset,
    offset=st.integers(-1, 2**62),
    leader_epoch=st.integers(-1, 5),
    metadata=st.sampled_from(["", "x", "ü" * 40]),
    commit_timestamp_ms=st.integers(0, 2**40),
)


def an_offset(offset: int, group: str = "g", tp: TopicPartition = ORDERS_0) -> StoredRecord:
    return offset_record(group, tp, CommittedOffset(offset, -1, "", 0))


def groups_of(shard: GroupShard) -> dict[str, Group]:
    for _ in shard.restore():
        pass
    return shard.groups


def offset_in(shard: GroupShard) -> int:
    return groups_of(shard)["g"].offsets[ORDERS_0].offset


@given(
    steps=st.lists(
        st.tuples(st.sampled_from(GROUP_IDS), st.sampled_from(PARTITIONS), st.one_of(st.none(), COMMITS)),
        max_size=30,
    )
)
def test_of_each_partition_the_last_commit_counts(
    steps: list[tuple[str, TopicPartition, CommittedOffset | None]],
) -> None:
    truth: dict[str, dict[TopicPartition, CommittedOffset]] = {}
    records = []
    for group_id, tp, committed in steps:
        if committed is None:
            truth.get(group_id, {}).pop(tp, None)
            records.append(offset_tombstone(group_id, tp))
        else:
            truth.setdefault(group_id, {})[tp] = committed
            records.append(offset_record(group_id, tp, committed))
    shard = a_shard()
    shard.apply(records)

    found = {group_id: dict(group.offsets) for group_id, group in groups_of(shard).items()}

    assert found == {group_id: offsets for group_id, offsets in truth.items() if offsets}
    assert shard.unreadable == 0


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4])
def test_offsets_of_every_version_are_read(version: int) -> None:
    key = encode_stored(OffsetCommitKey(group="g", topic="orders", partition=0), min(version, 1))
    shard = a_shard()
    shard.apply([(key, encode_stored(OffsetCommitValue(offset=7, metadata="m"), version))])

    assert offset_in(shard) == 7


@pytest.mark.parametrize(
    "record",
    [
        StoredRecord(an_offset(1).key, b""),
        StoredRecord(an_offset(1).key, b"\0\x09" + b"x" * 22),
        StoredRecord(an_offset(1).key, (an_offset(1).value or b"")[:-1]),
        StoredRecord(b"\0\x09what is this", b"x"),
        StoredRecord(b"", b"x"),
        StoredRecord(group_tombstone("g").key, b"\0\x03cut"),
    ],
    ids=["empty", "unknown version", "cut short", "unknown kind", "no key", "group cut short"],
)
def test_what_makes_no_sense_is_counted_and_passed_over(record: StoredRecord) -> None:
    shard = a_shard()
    shard.apply([an_offset(5), record])

    assert offset_in(shard) == 5
    assert shard.unreadable == 1


def test_a_tombstone_of_a_group_leaves_its_offsets() -> None:
    shard = a_shard()
    group = Group("g", generation=3, protocol_type="consumer")
    shard.apply([an_offset(5), group_record(group, {}, 0), group_tombstone("g")])

    assert offset_in(shard) == 5
    assert shard.groups["g"].generation == 0


@pytest.mark.parametrize("version", [1, 3, 9, -1])
def test_what_a_group_reads_is_known_though_a_member_leaves_out_what_its_version_should_have(
    version: int,
) -> None:
    blob = encode_blob(ConsumerProtocolSubscription(topics=("orders",)), 0)
    said = Protocol("range", struct.pack(">h", version) + blob[2:])
    group = Group("g", generation=3, protocol_name="range")
    group.add(Member("m", None, "c", "/h", 1, 1, "consumer", (said,)))
    shard = a_shard()
    shard.apply([group_record(group, {}, 0)])

    restored = groups_of(shard)["g"]

    assert restored.subscribed_topics == {"orders"}


def test_a_transactions_offsets_count_with_its_marker_alone() -> None:
    shard = a_shard()
    shard.apply([an_offset(5)])
    shard.apply([an_offset(6)], 1)
    shard.apply([an_offset(7)], 2)
    shard.end_transaction(2, is_commit=False)

    assert offset_in(shard) == 5


def test_a_commit_after_a_transactions_own_outlives_its_marker() -> None:
    shard = a_shard()
    shard.apply([an_offset(6)], 1)
    shard.apply([an_offset(9)])
    shard.end_transaction(1, is_commit=True)

    assert offset_in(shard) == 9


@pytest.mark.parametrize("first", [1, 2])
def test_of_two_transactions_the_later_commit_counts_whichever_marker_comes_first(first: int) -> None:
    shard = a_shard()
    shard.apply([an_offset(6)], 1)
    shard.apply([an_offset(7)], 2)
    for producer_id in (first, 3 - first):
        shard.end_transaction(producer_id, is_commit=True)

    assert offset_in(shard) == 7


def test_a_table_of_offsets_is_asked_by_partition() -> None:
    shard = a_shard()
    shard.apply([an_offset(5), an_offset(6, tp=TopicPartition("orders", 1))])
    offsets = shard.groups["g"].offsets

    assert offsets[ORDERS_0].offset == 5
    assert offsets.get(TopicPartition("orders", 9)) is None
    assert list(offsets) == [ORDERS_0, TopicPartition("orders", 1)]
    assert offsets.held_of(by_stored_form([ORDERS_0, TopicPartition("other", 0)])) == [ORDERS_0]
    shard.apply([offset_tombstone("g", ORDERS_0)])
    assert ORDERS_0 not in offsets
    assert offsets.held_of(by_stored_form([ORDERS_0])) == []


def test_an_offset_that_a_commit_overtook_stays_unstable_until_its_marker() -> None:
    shard = a_shard()
    shard.apply([an_offset(6)], 1)
    shard.apply([an_offset(9)])

    def code() -> int:
        return shard.fetch("g", [ORDERS_0], require_stable=True).topics[0].partitions[0].error_code

    assert code() == ErrorCode.UNSTABLE_OFFSET_COMMIT
    shard.end_transaction(1, is_commit=True)
    assert code() == ErrorCode.NONE
    assert offset_in(shard) == 9
