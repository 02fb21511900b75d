"""Assignors: the same members, topics and racks given to Kafka's own, which read our blobs.

Members have names of one letter: Kafka visits them in the order of a hash table, and that is the alphabet's
then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ottla.client.group.assignors import ASSIGNORS, MemberData, Shares
from ottla.client.group.subscriptions import Share, by_topic, decode_member, encode_subscription
from ottla.model.ids import TopicPartition
from ottla.wire.apis.join_group import JoinGroupResponseMember
from ottla.wire.consumer_protocol import ConsumerProtocolSubscription, encode_blob
from support.processes.java_harness import java_harness
from support.processes.lab import old_kafka_jars

pytestmark = [pytest.mark.apache, pytest.mark.java, pytest.mark.slow]
examples = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck), database=None)

TOPICS = ("apples", "beets", "chives")
RACKS = ("", "r0", "r1", "r2")
BROKERS = tuple(range(4))
COUNTS = st.dictionaries(st.sampled_from(TOPICS), st.integers(1, 9), min_size=1)
SOME_TOPICS = st.frozensets(st.sampled_from(TOPICS), min_size=1)
NAMES = st.lists(st.sampled_from("abcdefgh"), min_size=1, unique=True)
PLACES = st.lists(st.sampled_from(BROKERS), min_size=1, max_size=3, unique=True)


class Cluster:
    """Brokers in racks, and topics on them."""

    def __init__(self, counts: dict[str, int], racks: Sequence[str], data: st.DataObject) -> None:
        self.counts = self._all_counts = counts
        self._racks = racks
        self._replicas = {
            TopicPartition(topic, number): data.draw(PLACES)
            for topic, count in counts.items()
            for number in range(count)
        }

    def only(self, members: Sequence[MemberData]) -> Cluster:
        """Leaders ask for the topics that somebody wants."""
        wanted = {topic for member in members for topic in member.topics}
        self.counts = {topic: count for topic, count in self._all_counts.items() if topic in wanted}
        return self

    def lines(self) -> list[str]:
        nodes = [f"node {broker} {rack or '-'}" for broker, rack in zip(BROKERS, self._racks, strict=True)]
        return nodes + [
            f"partition {tp.topic} {tp.partition} {','.join(map(str, replicas))}"
            for tp, replicas in self._replicas.items()
        ]

    def racks(self) -> dict[TopicPartition, frozenset[str]]:
        return {
            tp: frozenset(self._racks[broker] for broker in replicas if self._racks[broker])
            for tp, replicas in self._replicas.items()
        }


def blob_of(assignor: str, member: MemberData) -> bytes:
    owned = Share(frozenset(member.owned), member.generation)
    return encode_subscription(assignor, sorted(member.topics), owned, owned, member.rack)


def javas(assignor: str, cluster: Cluster, members: Sequence[MemberData]) -> Shares:
    lines = [
        f"member {member.member_id} {member.instance_id or '-'} {blob_of(assignor, member).hex()}"
        for member in members
    ]
    shares: Shares = {member.member_id: [] for member in members}
    answer = java_harness("AssignorOracle").call_text(assignor, "\n".join(cluster.lines() + lines).encode())
    for line in answer.splitlines():
        member_id, topic, number = line.split(" ")
        shares[member_id].append(TopicPartition(topic, int(number)))
    return {member_id: sorted(share) for member_id, share in shares.items()}


def ours(assignor: str, cluster: Cluster, members: Sequence[MemberData]) -> Shares:
    """As a leader of ours finds it, from the same blobs."""
    told = [
        decode_member(
            assignor,
            JoinGroupResponseMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                metadata=blob_of(assignor, member),
            ),
        )
        for member in members
    ]
    shares = ASSIGNORS[assignor].assign(cluster.counts, told, cluster.racks())
    return {member_id: sorted(share) for member_id, share in shares.items()}


def drawn(data: st.DataObject, *, alike: bool, with_racks: bool) -> tuple[Cluster, list[MemberData]]:
    racks = RACKS if with_racks else ("",)
    brokers_racks = [data.draw(st.sampled_from(racks)) for _ in BROKERS]
    cluster = Cluster(data.draw(COUNTS), brokers_racks, data)
    the_same = data.draw(SOME_TOPICS)
    members = [
        MemberData(
            name,
            the_same if alike else data.draw(SOME_TOPICS),
            data.draw(st.sampled_from([None, f"i{number}"])),
            rack=data.draw(st.sampled_from(racks)),
        )
        for number, name in enumerate(data.draw(NAMES))
    ]
    return cluster.only(members), members


@pytest.mark.parametrize("with_racks", [False, True], ids=["no racks", "racks"])
@pytest.mark.parametrize("assignor", ["range", "roundrobin"])
@examples
@given(data=st.data())
def test_what_is_shared_out_anew_each_time_is_the_same(
    assignor: str, with_racks: bool, data: st.DataObject
) -> None:
    cluster, members = drawn(data, alike=False, with_racks=with_racks)

    assert ours(assignor, cluster, members) == javas(assignor, cluster, members)


@pytest.mark.parametrize("with_racks", [False, True], ids=["no racks", "racks"])
@pytest.mark.parametrize("assignor", ["sticky", "cooperative-sticky"])
@examples
@given(data=st.data())
def test_shares_that_stick_are_the_same_for_members_that_want_the_same(
    assignor: str, with_racks: bool, data: st.DataObject
) -> None:
    cluster, members = drawn(data, alike=True, with_racks=with_racks)
    topics = members[0].topics

    for generation in range(1, 4):
        shares = javas(assignor, cluster, members)
        assert ours(assignor, cluster, members) == shares
        # Some leave, some come, and some have missed what happened.
        members = [
            member
            if data.draw(st.integers(0, 3)) == 0
            else replace(member, owned=tuple(shares[member.member_id]), generation=generation)
            for member in members
            if data.draw(st.integers(0, 4))
        ]
        known = {member.member_id for member in members}
        members += [
            MemberData(name, topics, rack=data.draw(st.sampled_from(RACKS)) if with_racks else "")
            for name in data.draw(NAMES)[:3]
            if name not in known
        ]
        if not members:
            return


@pytest.mark.parametrize("assignor", ["sticky", "cooperative-sticky"])
@examples
@given(data=st.data())
def test_members_that_want_different_topics_keep_their_shares_when_a_leader_of_the_other_kind_comes(
    assignor: str, data: st.DataObject
) -> None:
    cluster, members = drawn(data, alike=False, with_racks=False)

    for first, then in ((javas, ours), (ours, javas)):
        shares = first(assignor, cluster, members)
        owning = [replace(each, owned=tuple(shares[each.member_id]), generation=1) for each in members]
        assert then(assignor, cluster, owning) == shares


@pytest.mark.parametrize("newcomer", ["0", "z"], ids=["first", "last"])
def test_a_leader_of_old_knows_what_a_cooperative_member_of_ours_still_has(newcomer: str) -> None:
    """Java's clients before 3.4 say their generation in data of their own, and look for it there alone."""
    mine, theirs = (
        Share(frozenset(TopicPartition("apples", number) for number in numbers), 5)
        for numbers in ((0, 1, 2), (3, 4, 5))
    )
    of_old = ConsumerProtocolSubscription(
        topics=("apples",), user_data=b"\0\0\0\5", owned_partitions=by_topic(theirs.partitions)
    )
    blobs = {
        "mine": encode_subscription("cooperative-sticky", ["apples"], mine, mine),
        "theirs": encode_blob(of_old, 1),
        newcomer: encode_blob(ConsumerProtocolSubscription(topics=("apples",), user_data=b"\xff" * 4), 1),
    }
    lines = ["node 0 -", *(f"partition apples {number} 0" for number in range(6))]
    lines += [f"member {member_id} - {blob.hex()}" for member_id, blob in blobs.items()]

    leader = java_harness("AssignorOracle", old_kafka_jars())
    shares = leader.call_text("cooperative-sticky", "\n".join(lines).encode()).splitlines()

    given = {name: {int(row.split()[2]) for row in shares if row.split()[0] == name} for name in blobs}
    assert given["mine"] < {0, 1, 2}
    assert given["theirs"] < {3, 4, 5}
    assert given[newcomer] == set(), "what it is to have is still with the others"
