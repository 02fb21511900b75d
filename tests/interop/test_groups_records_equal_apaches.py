"""After the same conversations, the partitions of ``__consumer_offsets`` hold the same bytes at both.

Member ids and moments are replaced by names; everything else in the batches is compared, their headers too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.records.batch import batches
from ottla.records.record import read_records
from ottla.wire.apis.delete_groups import DeleteGroupsRequest
from ottla.wire.apis.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from ottla.wire.stored import GroupMetadataValue, decode_stored, encode_stored
from support.groups.conversation import OTHER_TOPIC, TOPIC, UUID, Talk
from support.groups.two_clusters import TwoClusters, two_clusters
from support.running.waiting import wait_until

pytestmark = [pytest.mark.apache, pytest.mark.java, pytest.mark.slow]

GROUP_KEY, GROUP_VERSION = b"\0\2", 3
MOMENT = re.compile(rb"\x00\x00\x01[\x90-\xbf].{4}", re.DOTALL)
"""A time between 2024 and 2030 as eight bytes: the only such numbers in these records."""


@pytest.fixture(scope="module")
def clusters(jars: object, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoClusters]:
    with two_clusters(tmp_path_factory.mktemp("two")) as running:
        yield running


def live(talk: Talk) -> None:
    """Members come and go, static ones return; offsets are committed, with a retention too, and deleted."""
    talk.commit({(TOPIC, 0): 5, (TOPIC, 1): 6}, metadata="said")
    talk.commit({(TOPIC, 2): 7}, version=4, retention_time_ms=5_000_000)
    talk.commit({(TOPIC, 1): 8}, metadata=None)
    a, b = talk.pair()
    talk.commit({(TOPIC, 0): 9, (OTHER_TOPIC, 0): 9}, a.member_id, a.generation_id)
    talk.leave(b.member_id)
    talk.join(a.member_id)
    talk.leave(a.member_id)
    static = talk.stable(group_instance_id="one")
    talk.join(group_instance_id="one")
    row = OffsetDeleteRequestPartition(partition_index=0)
    topic = OffsetDeleteRequestTopic(name=OTHER_TOPIC, partitions=[row])
    talk.ask(OffsetDeleteRequest(group_id=talk.group, topics=[topic]), 0)
    talk.commit({(TOPIC, 0): 1}, static.member_id, static.generation_id)
    talk.leave(instances=("one",))
    other = Talk(talk.address, f"{talk.group}-other")
    other.commit({(TOPIC, 0): 5, (TOPIC, 1): 5})
    other.ask(DeleteGroupsRequest(groups_names=(other.group,)), 2)
    other.close()


def leader_first(value: bytes) -> bytes:
    """A group's record with its members in an order: Apache's is that of a hash map."""
    group = decode_stored(GroupMetadataValue, value)
    assert encode_stored(group, GROUP_VERSION) == value, "a group's record is read without loss"
    group.members.sort(key=lambda member: member.member_id != group.leader)
    return encode_stored(group, GROUP_VERSION)


def stored(log_dir: Path) -> list[Any]:
    """Every batch: its header without times and checksum, its records with names for ids and moments."""
    names: dict[bytes, bytes] = {}

    def named(found: re.Match[bytes]) -> bytes:
        return names.setdefault(found[0], b"#%d" % (len(names) + 1))

    def neutral(part: bytes | None) -> bytes | None:
        return None if part is None else MOMENT.sub(b"<now>", re.sub(UUID.pattern.encode(), named, part))

    def record(key: bytes | None, value: bytes | None) -> tuple[bytes | None, bytes | None]:
        is_group = key is not None and value is not None and key[:2] == GROUP_KEY
        return neutral(key), neutral(leader_first(value) if is_group and value is not None else value)

    rows: list[Any] = []
    data = memoryview((log_dir / "__consumer_offsets-0" / f"{0:020}.log").read_bytes())
    for header in batches(data):
        kept = (header.attributes, header.producer_id, header.producer_epoch, header.base_sequence)
        records = [record(each.key, each.value) for each in read_records(data, header)]
        rows.append((header.base_offset, header.last_offset, kept, records))
    return rows


def test_the_stored_records_are_apaches(clusters: TwoClusters) -> None:
    for broker in clusters.both:
        talk = Talk(broker.address, "g-stored")
        live(talk)
        talk.close()

    theirs = wait_until(lambda: stored(clusters.apache.log_dir), "Apache's records are in the file")
    ours = wait_until(lambda: stored(clusters.ottla.log_dir), "Ottla's records are in the file")

    assert len(theirs) > 10
    assert ours == theirs
