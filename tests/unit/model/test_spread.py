"""The spread by Java's hash."""

import pytest

from ottla.model.spread import coordinating_partition, java_string_hash, place_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", 0), ("orders", -1008770331), ("__consumer_offsets", -970371369), ("\U0001f600", 1772899)],
)
def test_strings_hash_as_in_java(text: str, expected: int) -> None:
    assert java_string_hash(text) == expected


def test_a_hash_goes_by_its_size_and_the_smallest_number_counts_as_zero() -> None:
    assert coordinating_partition("orders", 50) == 1008770331 % 50
    assert place_of(-(2**31), 7) == 0
