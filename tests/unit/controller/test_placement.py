"""Where replicas are placed, as tables."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.controller.placement import (
    PlacementRule,
    alternate_racks,
    place_across_racks,
    place_plainly,
    place_replicas,
    place_shifted,
    start_for_added_partitions,
)
from ottla.model.errors import Refusal
from ottla.model.ids import BrokerId

FIVE = [BrokerId(n) for n in range(5)]

SHIFTED_TABLE = {
    0: (0, 1, 2),
    1: (1, 2, 3),
    2: (2, 3, 4),
    3: (3, 4, 0),
    4: (4, 0, 1),
    5: (0, 2, 3),
    6: (1, 3, 4),
    7: (2, 4, 0),
    8: (3, 0, 1),
    9: (4, 1, 2),
}
PLAIN_TABLE = {
    0: (0, 1, 2),
    1: (1, 2, 3),
    2: (2, 3, 4),
    3: (3, 4, 0),
    4: (4, 0, 1),
    5: (0, 1, 2),
    6: (1, 2, 3),
    7: (2, 3, 4),
    8: (3, 4, 0),
    9: (4, 0, 1),
}


def racks(**names: str | None) -> dict[BrokerId, str | None]:
    return {BrokerId(int(name[1:])): rack for name, rack in names.items()}


def test_five_brokers_ten_partitions_three_replicas_by_kafkas_shifted_rule():
    assert dict(place_shifted(FIVE, 10, 3)) == SHIFTED_TABLE


def test_five_brokers_ten_partitions_three_replicas_by_the_plain_rule():
    assert dict(place_plainly(FIVE, 10, 3)) == PLAIN_TABLE


@pytest.mark.parametrize(
    ("rule", "table"), [(PlacementRule.SHIFTED, SHIFTED_TABLE), (PlacementRule.PLAIN, PLAIN_TABLE)]
)
def test_the_rule_can_be_chosen(rule: PlacementRule, table: dict[int, tuple[int, ...]]):
    assert place_replicas(dict.fromkeys(FIVE), 10, 3, rule=rule) == table


def test_start_moves_the_leaders_and_shift_moves_the_followers():
    assert dict(place_shifted(FIVE, 2, 3, start=2, shift=1)) == {0: (2, 4, 0), 1: (3, 0, 1)}


def test_added_partitions_go_on_where_the_topic_ended():
    whole = dict(place_shifted(FIVE, 10, 3))

    added = dict(place_shifted(FIVE, 4, 3, first_partition=6, shift=1))

    assert added == {partition: whole[partition] for partition in (6, 7, 8, 9)}


def test_added_partitions_begin_at_the_first_broker_not_below_the_topics_first_replica():
    brokers = [BrokerId(1), BrokerId(4), BrokerId(7)]

    assert start_for_added_partitions(brokers, [BrokerId(4)]) == 1
    assert start_for_added_partitions(brokers, [BrokerId(5)]) == 2
    assert start_for_added_partitions(brokers, [BrokerId(9)]) == 0


def test_racks_alternate_by_name_and_brokers_by_id():
    names = racks(b0="c", b1="a", b2="b", b3="b", b4="a", b5="c", b6="a")

    assert alternate_racks({b: r for b, r in names.items() if r}) == [1, 2, 0, 4, 3, 5, 6]


def test_each_replica_stands_in_its_own_rack_while_racks_last():
    names = {BrokerId(b): f"rack{b % 3}" for b in range(6)}

    placed = dict(place_across_racks(names, 12, 3, start=1, shift=2))

    assert all(len({names[b] for b in replicas}) == 3 for replicas in placed.values())


def test_rack_aware_placement_follows_kafkas_scan():
    """Six brokers in three racks, start and shift zero: worked by hand from the rule."""
    names = {BrokerId(b): r for b, r in {0: "1", 1: "2", 2: "2", 3: "3", 4: "3", 5: "1"}.items()}

    placed = dict(place_across_racks(names, 7, 3))

    assert alternate_racks(names) == [0, 1, 3, 5, 2, 4]
    assert placed == {
        0: (0, 1, 3),
        1: (1, 3, 5),
        2: (3, 5, 2),
        3: (5, 2, 4),
        4: (2, 4, 0),
        5: (4, 0, 1),
        6: (0, 2, 4),
    }


@pytest.mark.parametrize(
    ("names", "partitions", "factor", "words"),
    [
        (racks(b0=None, b1=None), 1, 3, "larger than available brokers: 2"),
        (racks(b0=None), 0, 1, "partitions must be larger than 0"),
        (racks(b0=None), 1, 0, "factor must be larger than 0"),
        (racks(b0="a", b1=None), 1, 1, "Not all brokers have rack information"),
        (racks(), 1, 1, "available brokers: 0"),
    ],
)
def test_what_cannot_be_placed_is_refused_with_the_reason(
    names: dict[BrokerId, str | None], partitions: int, factor: int, words: str
):
    refused = place_replicas(names, partitions, factor)

    assert isinstance(refused, Refusal)
    assert words in refused.why


@given(
    st.integers(1, 12).flatmap(
        lambda n: st.tuples(
            st.lists(st.sampled_from([None, "a", "b", "c"]), min_size=n, max_size=n),
            st.integers(1, n),
            st.integers(0, n - 1),
            st.integers(0, n - 1),
            st.sampled_from(list(PlacementRule)),
        )
    ),
    st.integers(1, 40),
)
def test_every_partition_gets_its_replicas_on_different_brokers(case, partitions: int):
    names, factor, start, shift, rule = case
    brokers = {BrokerId(n): rack for n, rack in enumerate(names)}

    placed = place_replicas(brokers, partitions, factor, start=start, shift=shift, rule=rule)

    mixed = any(names) and not all(names) and rule is PlacementRule.SHIFTED
    assert isinstance(placed, Refusal) == mixed
    if not isinstance(placed, Refusal):
        assert list(placed) == list(range(partitions))
        assert all(len(set(r)) == len(r) == factor for r in placed.values())
        assert all(set(r) <= set(brokers) for r in placed.values())
