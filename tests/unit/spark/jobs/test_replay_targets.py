"""A replay begins only if its topic can take all of it."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark")

from pyspark.sql import Row

from ottla.spark.errors import OptionRefused
from ottla.spark.jobs.replay import ReplayOptions, fit_for
from ottla.spark.jobs.shared.cluster import Target

FOUND = [Row(topic="orders", partition=number, records=3, last=2) for number in (0, 2)]


def options(*, by_key: bool = False) -> ReplayOptions:
    return ReplayOptions(bootstrap_servers="", directory="/archive", topic="again", by_key=by_key)


def test_a_topic_that_is_not_there_is_refused_with_the_command_that_makes_it() -> None:
    with pytest.raises(OptionRefused) as raised:
        fit_for(FOUND, None, options())

    assert str(raised.value) == (
        "option topic='again': the cluster has no such topic, and nothing was written; "
        "make it: `ottla topics --create --topic again --partitions 3`"
    )


def test_a_topic_with_too_few_partitions_is_refused_with_the_two_ways_out() -> None:
    with pytest.raises(OptionRefused) as raised:
        fit_for(FOUND, Target("cluster/id", 2), options())

    assert str(raised.value) == (
        "option topic='again': it has 2 of the 3 partitions that the archive's records keep, and nothing was "
        "written; add partitions (`ottla topics --alter --topic again --partitions 3`), or let keys choose "
        "with --by-key"
    )


@pytest.mark.parametrize(
    ("count", "by_key"), [(3, False), (9, False), (1, True)], ids=["as many", "more", "keys choose"]
)
def test_a_topic_that_can_take_all_is_taken(count: int, by_key: bool) -> None:
    target = Target("cluster/id", count)

    assert fit_for(FOUND, target, options(by_key=by_key)) is target


def test_a_topic_needs_no_partitions_for_what_is_not_replayed() -> None:
    target = Target("cluster/id", 1)

    assert fit_for([], target, options()) is target
