"""Receipts, cuts, archives and groups' offsets tell together what is gone and who has read it."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("pyspark")

from ottla.model.ids import TopicPartition
from ottla.spark.errors import SparkRefused
from ottla.spark.jobs.losses import Gone, LossesOptions, Position, archived, check, gone_by, readers

ORDERS = TopicPartition("orders", 0)
GONE = Gone(ORDERS, 5, 100, 200)


def a_receipt(epoch: int, start: int, partition: str = "orders-0") -> dict[str, Any]:
    lost = {"from": start, "until": None}
    return {
        "kind": "loss receipt",
        "partition": partition,
        "leader_epoch": epoch,
        "old_isr": [1],
        "may_be_lost": lost,
    }


def a_cut(epoch: int, start: int, end: int) -> dict[str, Any]:
    lost = {"from": start, "until": end}
    return {"kind": "log cut", "partition": "orders-0", "broker": 1, "leader_epoch": epoch, "lost": lost}


def made() -> dict[str, Any]:
    return {"kind": "decision", "partition": "orders-0", "before": None, "after": {"leader": 1}}


def test_a_cut_says_where_a_loss_ends() -> None:
    assert gone_by([made(), a_receipt(5, 100)]) == [Gone(ORDERS, 5, 100, None)]
    assert gone_by([made(), a_receipt(5, 100), a_cut(5, 100, 200)]) == [GONE]


def test_losses_of_a_topic_that_was_deleted_are_no_ones() -> None:
    assert gone_by([made(), a_receipt(5, 100), made()]) == []


def test_only_the_topics_asked_for_are_told() -> None:
    rows = [a_receipt(5, 100), a_receipt(2, 3, "other-1")]

    assert gone_by(rows, ["other"]) == [Gone(TopicPartition("other", 1), 2, 3, None)]


@pytest.mark.parametrize(
    ("offset", "epoch", "sure"),
    [
        (150, 4, ["yes"]),
        (300, 4, ["yes"]),
        (100, 4, []),
        (150, 5, []),
        (150, -1, ["perhaps"]),
        (300, -1, []),
    ],
)
def test_a_group_has_read_what_is_gone_if_it_was_there_in_an_epoch_before(
    offset: int, epoch: int, sure: list[str]
) -> None:
    found = readers([GONE], [Position("group", ORDERS, offset, epoch)])

    assert found == [("group", ORDERS, 100, offset, word) for word in sure]


@pytest.mark.parametrize(
    ("end", "epoch", "topic_id", "span"),
    [
        (150, 4, "a", (100, 150)),
        (100, 4, "a", None),
        (150, 5, "a", None),
        (150, 4, "b", None),
    ],
)
def test_an_archive_has_what_it_read_of_the_same_topic_in_an_epoch_before(
    end: int, epoch: int, topic_id: str, span: tuple[int, int] | None
) -> None:
    reached = {
        "orders": {"0": end},
        "leader epochs": {"orders": {"0": epoch}},
        "topic ids": {"orders": topic_id},
    }

    assert archived(GONE, reached, {"orders": "a"}) == span


def test_a_repair_needs_an_archive() -> None:
    with pytest.raises(SparkRefused, match="nothing to write back from; name the archive with --archive"):
        check(LossesOptions(bootstrap_servers="localhost:1", repair=True))
