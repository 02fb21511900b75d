"""Which quota holds for whom, and who uses it up together."""

import pytest

from ottla.security.quotas.table import DEFAULT, Entity, Holding, QuotaTable, parse
from ottla.security.quotas.values import NotWhole, java_double, stored_value

LEVELS = {
    1: Entity("alice", "app"),
    2: Entity("alice", DEFAULT),
    3: Entity("alice", None),
    4: Entity(DEFAULT, "app"),
    5: Entity(DEFAULT, DEFAULT),
    6: Entity(DEFAULT, None),
    7: Entity(None, "app"),
    8: Entity(None, DEFAULT),
}
"""Kafka's eight levels, the first that is set counts."""
SHARED = {
    1: ("alice", "app"),
    2: ("alice", "app"),
    3: ("alice", ""),
    4: ("alice", "app"),
    5: ("alice", "app"),
    6: ("alice", ""),
    7: ("", "app"),
    8: ("", "app"),
}


def a_table(*levels: int) -> QuotaTable:
    table = QuotaTable()
    for level in levels:
        table.set(LEVELS[level], level)
    return table


@pytest.mark.parametrize("first", LEVELS)
def test_the_most_specific_quota_holds_and_its_level_says_who_shares_it(first: int) -> None:
    table = a_table(*range(first, 9))

    assert table.holding("alice", "app") == Holding(first, *SHARED[first])


def test_without_any_quota_none_holds() -> None:
    table = a_table(1)
    assert table.holding("bob", "app") is None
    table.set(LEVELS[1], None)

    assert not table
    assert table.holding("alice", "app") is None


def test_a_client_without_an_id_has_quotas_of_its_user_alone() -> None:
    assert a_table(8).holding("alice", "") is None
    assert a_table(2, 8).holding("alice", "") is None
    assert a_table(2, 3, 8).holding("alice", "") == Holding(3, "alice", "")


def test_setting_the_same_again_changes_nothing() -> None:
    table = a_table(3)

    assert not table.set(LEVELS[3], 3)
    assert table.set(LEVELS[3], 4)
    assert table.set(LEVELS[3], None)


def test_of_an_entity_only_the_quotas_of_its_kind_are_read() -> None:
    config = {"producer_byte_rate": "1024", "request_percentage": "much", "SCRAM-SHA-256": "salt=x"}

    assert parse("users", config) == ({"producer_byte_rate": 1024.0}, ["request_percentage"])
    assert parse("ips", {"connection_creation_rate": "7", **config}) == (
        {"connection_creation_rate": 7.0},
        [],
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (0.00012, "1.2E-4"),
        (0.0, "0.0"),
        (1.0, "1.0"),
        (200.5, "200.5"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (12345678.9, "1.23456789E7"),
        (-2.5e22, "-2.5E22"),
        (float("inf"), "Infinity"),
        (float("nan"), "NaN"),
    ],
)
def test_doubles_are_written_as_java_writes_them(value: float, text: str) -> None:
    assert java_double(value) == text


def test_bytes_are_whole_numbers() -> None:
    assert stored_value(1024.0, "LONG") == "1024"
    assert stored_value(7.0000001, "INT") == "7"
    for value, kind in ((1.5, "LONG"), (1e19, "LONG"), (3e9, "INT"), (float("inf"), "LONG")):
        with pytest.raises(NotWhole):
            stored_value(value, kind)
