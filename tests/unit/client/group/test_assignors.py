"""Assignors: every partition once, shares even, and as they were where that is promised."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.client.group.assignors import ASSIGNORS, MemberData, Shares
from ottla.model.ids import TopicPartition

TOPICS = ("apples", "beets", "chives")
COUNTS = st.dictionaries(st.sampled_from(TOPICS), st.integers(0, 9), min_size=1)
SOME_TOPICS = st.frozensets(st.sampled_from(TOPICS), min_size=1)
PARTITIONS = st.builds(TopicPartition, st.sampled_from(TOPICS), st.integers(0, 11))
NAMES = tuple(f"m{number}" for number in range(6))


@st.composite
def groups(draw: st.DrawFn) -> list[MemberData]:
    """Members that may want different topics and claim anything."""
    return [
        MemberData(
            name,
            draw(SOME_TOPICS),
            draw(st.sampled_from([None, f"i-{name}"])),
            tuple(draw(st.lists(PARTITIONS, max_size=6))),
            draw(st.integers(-1, 3)),
        )
        for name in draw(st.lists(st.sampled_from(NAMES), min_size=1, unique=True))
    ]


def alike(names: tuple[str, ...]) -> list[MemberData]:
    return [MemberData(name, frozenset(TOPICS)) for name in names]


def having(members: list[MemberData], shares: Shares, generation: int = 1) -> list[MemberData]:
    return [
        replace(member, owned=tuple(shares.get(member.member_id, ())), generation=generation)
        for member in members
    ]


def dealt(shares: Shares) -> list[TopicPartition]:
    return [tp for share in shares.values() for tp in share]


def wanted(counts: dict[str, int], members: list[MemberData]) -> set[TopicPartition]:
    topics = {topic for member in members for topic in member.topics}
    return {TopicPartition(t, n) for t, count in counts.items() if t in topics for n in range(count)}


@pytest.mark.parametrize("name", ["range", "roundrobin", "sticky"])
@given(counts=COUNTS, members=groups())
def test_every_partition_has_one_owner_that_wants_it(
    name: str, counts: dict[str, int], members: list[MemberData]
) -> None:
    shares = ASSIGNORS[name].assign(counts, members)

    assert shares.keys() == {member.member_id for member in members}
    assert len(dealt(shares)) == len(set(dealt(shares)))
    assert set(dealt(shares)) == wanted(counts, members)
    assert all(tp.topic in m.topics for m in members for tp in shares[m.member_id])


@given(counts=COUNTS, members=groups())
def test_a_cooperative_share_has_nothing_that_another_still_holds(
    counts: dict[str, int], members: list[MemberData]
) -> None:
    shares = ASSIGNORS["cooperative-sticky"].assign(counts, members)

    assert len(dealt(shares)) == len(set(dealt(shares)))
    for member in members:
        for tp in shares[member.member_id]:
            others = [other for other in members if other is not member and tp in other.owned]
            has_the_latest_claim = tp in member.owned and all(
                other.generation < member.generation or tp.topic not in other.topics for other in others
            )
            assert not others or has_the_latest_claim


@pytest.mark.parametrize("name", ["roundrobin", "sticky"])
@given(counts=COUNTS, names=st.lists(st.sampled_from(NAMES), min_size=1, unique=True))
def test_members_that_want_the_same_get_as_much(name: str, counts: dict[str, int], names: list[str]) -> None:
    shares = ASSIGNORS[name].assign(counts, alike(tuple(names)))

    loads = [len(share) for share in shares.values()]
    assert max(loads) - min(loads) <= 1


@given(counts=COUNTS, members=groups())
def test_no_single_move_would_make_sticky_shares_more_even(
    counts: dict[str, int], members: list[MemberData]
) -> None:
    shares = ASSIGNORS["sticky"].assign(counts, members)

    for member in members:
        for other in members:
            movable = [tp for tp in shares[other.member_id] if tp.topic in member.topics]
            assert not movable or len(shares[other.member_id]) <= len(shares[member.member_id]) + 1


@given(counts=COUNTS, members=groups())
def test_sticky_shares_stay_when_nothing_changes(counts: dict[str, int], members: list[MemberData]) -> None:
    first = ASSIGNORS["sticky"].assign(counts, members)

    second = ASSIGNORS["sticky"].assign(counts, having(members, first))

    assert second == first


@given(counts=COUNTS, size=st.integers(2, 6))
def test_who_stays_keeps_its_share_when_another_leaves(counts: dict[str, int], size: int) -> None:
    members = alike(NAMES[:size])
    before = ASSIGNORS["sticky"].assign(counts, members)

    after = ASSIGNORS["sticky"].assign(counts, having(members, before)[1:])

    assert all(set(before[name]) <= set(after[name]) for name in after)


@given(counts=COUNTS, size=st.integers(1, 5))
def test_only_the_newcomer_gains_when_one_joins(counts: dict[str, int], size: int) -> None:
    members = alike(NAMES[:size])
    before = ASSIGNORS["sticky"].assign(counts, members)
    newcomer = MemberData(NAMES[size], frozenset(TOPICS))

    after = ASSIGNORS["sticky"].assign(counts, [*having(members, before), newcomer])

    assert all(set(after[name]) <= set(before[name]) for name in before)


@settings(max_examples=50)
@given(counts=COUNTS, size=st.integers(1, 5), leaves=st.booleans())
def test_cooperative_members_come_to_rest_in_a_second_round(
    counts: dict[str, int], size: int, leaves: bool
) -> None:
    cooperative = ASSIGNORS["cooperative-sticky"]
    members = alike(NAMES[:size])
    before = cooperative.assign(counts, members)
    now = having(members, before)
    now = now[1:] if leaves and size > 1 else [*now, MemberData(NAMES[size], frozenset(TOPICS))]

    first = cooperative.assign(counts, now)
    second = cooperative.assign(counts, having(now, first, generation=2))

    assert set(dealt(second)) == wanted(counts, now)
    assert cooperative.assign(counts, having(now, second, generation=3)) == second


def test_a_range_is_cut_as_kafka_cuts_it() -> None:
    members = [MemberData("b", frozenset({"apples"})), MemberData("a", frozenset({"apples"}))]

    shares = ASSIGNORS["range"].assign({"apples": 3}, members)

    assert {name: [tp.partition for tp in share] for name, share in shares.items()} == {"a": [0, 1], "b": [2]}


def test_of_two_claims_the_later_generation_counts() -> None:
    members = [
        MemberData("old", frozenset({"apples"}), owned=(TopicPartition("apples", 0),), generation=1),
        MemberData("new", frozenset({"apples"}), owned=(TopicPartition("apples", 0),), generation=2),
    ]

    shares = ASSIGNORS["sticky"].assign({"apples": 1}, members)

    assert shares == {"old": [], "new": [TopicPartition("apples", 0)]}


def test_a_claim_of_old_does_not_cost_a_cooperative_member_what_it_has() -> None:
    members = [
        MemberData("new", frozenset({"apples"}), owned=(TopicPartition("apples", 0),), generation=2),
        MemberData("old", frozenset({"apples"}), owned=(TopicPartition("apples", 0),), generation=1),
    ]

    shares = ASSIGNORS["cooperative-sticky"].assign({"apples": 1}, members)

    assert shares == {"new": [TopicPartition("apples", 0)], "old": []}


@pytest.mark.parametrize("name", ["sticky", "cooperative-sticky"])
def test_who_gives_half_away_gives_half_of_each_topic(name: str) -> None:
    counts = {"apples": 4, "beets": 4}
    all_of_it = tuple(TopicPartition(topic, number) for topic in counts for number in range(4))
    members = [
        MemberData("a", frozenset(counts), owned=all_of_it, generation=1),
        MemberData("b", frozenset(counts)),
    ]

    shares = ASSIGNORS[name].assign(counts, members)

    assert shares["a"] == [TopicPartition(topic, number) for topic in counts for number in (0, 1)]


# -- racks -----------------------------------------------------------------------------------------

RACKS = ("r0", "r1", "r2")
PLACES = st.dictionaries(PARTITIONS, st.frozensets(st.sampled_from(RACKS)))


@pytest.mark.parametrize("name", ["range", "roundrobin", "sticky"])
@given(counts=COUNTS, members=groups(), racks=PLACES, data=st.data())
def test_shares_are_whole_and_as_even_whatever_the_racks(
    name: str,
    counts: dict[str, int],
    members: list[MemberData],
    racks: dict[TopicPartition, frozenset[str]],
    data: st.DataObject,
) -> None:
    placed = [replace(member, rack=data.draw(st.sampled_from(("", *RACKS)))) for member in members]
    without = ASSIGNORS[name].assign(counts, members)

    shares = ASSIGNORS[name].assign(counts, placed, racks)

    assert sorted(dealt(shares)) == sorted(dealt(without))
    assert all(tp.topic in m.topics for m in members for tp in shares[m.member_id])
    if len({member.topics for member in members}) == 1:
        assert sizes(shares, each_topic=name == "range") == sizes(without, each_topic=name == "range")


def sizes(shares: Shares, *, each_topic: bool) -> dict[str, list[int]]:
    """How large the shares are, the smallest first: in all, or of each topic, as range counts."""
    topics = {tp.topic for tp in dealt(shares)} if each_topic else {""}
    return {
        topic: sorted(sum(topic in ("", tp.topic) for tp in share) for share in shares.values())
        for topic in topics
    }


@pytest.mark.parametrize("name", ["range", "sticky", "cooperative-sticky"])
def test_members_get_what_is_near(name: str) -> None:
    topics = frozenset({"apples", "beets"})
    racks = {TopicPartition(t, n): frozenset({RACKS[n % 2]}) for t in topics for n in range(6)}
    members = [MemberData("a", topics, rack="r1"), MemberData("b", topics, rack="r0")]

    shares = ASSIGNORS[name].assign(dict.fromkeys(topics, 6), members, racks)

    assert {tp.partition for tp in shares["a"]} == {1, 3, 5}
    assert {tp.partition for tp in shares["b"]} == {0, 2, 4}


def test_members_that_want_different_topics_get_what_is_near() -> None:
    racks = {TopicPartition("apples", n): frozenset({RACKS[n % 2]}) for n in range(6)}
    members = [
        MemberData("a", frozenset({"apples", "beets"}), rack="r1"),
        MemberData("b", frozenset({"apples"}), rack="r0"),
        MemberData("c", frozenset({"beets"})),
    ]

    shares = ASSIGNORS["sticky"].assign({"apples": 6, "beets": 3}, members, racks)

    assert [tp.partition for tp in shares["b"]] == [0, 2, 4]
    assert [tp.partition for tp in shares["a"] if tp.topic == "apples"] == [1, 3, 5]


def test_a_rack_that_is_everywhere_changes_nothing() -> None:
    racks = {TopicPartition("apples", number): frozenset(RACKS) for number in range(4)}
    members = [
        MemberData(name, frozenset({"apples"}), rack=rack) for name, rack in zip("ab", RACKS, strict=False)
    ]

    shares = ASSIGNORS["range"].assign({"apples": 4}, members, racks)

    assert [tp.partition for tp in shares["a"]] == [0, 1]
