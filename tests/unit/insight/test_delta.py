"""A picture is kept true by the records of decisions."""

from __future__ import annotations

from typing import Any

from ottla.insight.delta import advanced, changes
from ottla.model.ids import TopicPartition
from support.client.pictures import a_picture

SEEN = a_picture({"a-0": (1, (1, 2), (1, 2))})
NAME = TopicPartition("a", 0)


def a_row(epoch: int, **changes: Any) -> dict[str, Any]:
    after = {"leader": 2, "leader_epoch": epoch, "isr": [2]}
    row = {"partition": "a-0", "kind": "decision", "after": after, "controller_epoch": 5}
    return {**row, **changes}


def test_a_newer_decision_moves_the_leader_and_tells_the_controllers_epoch() -> None:
    later = advanced(SEEN, [a_row(4)])

    assert (later.partitions[NAME].leader, later.partitions[NAME].isr) == (2, (2,))
    assert later.controller_epoch == 5
    assert changes(SEEN, later) == ["controller epoch 1 -> 5", "a-0 leader 1 -> 2", "a-0 in sync 1,2 -> 2"]


def test_an_older_decision_and_one_of_an_unknown_partition_change_no_partition() -> None:
    older = advanced(SEEN, [a_row(2), a_row(9, partition="b-0"), a_row(9, kind="loss receipt")])

    assert older.partitions is SEEN.partitions
