"""What the tests of groups rest on: a member that fails is named, and none claims what it has lost."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from support.members.drill import Drill
from support.members.programs import Kind
from support.running.waiting import wait_until

NOWHERE = "127.0.0.1:1"


def test_a_member_that_ends_by_itself_is_named_at_once(tmp_path: Path) -> None:
    kind = Kind("brief", lambda: [sys.executable, "-c", "print('failed for a reason')"], ("range",))
    drill = Drill(NOWHERE, "orders", "readers", kind, "range", tmp_path)
    drill.join()
    try:
        with pytest.raises(AssertionError, match=r"(?s)brief-0 ended by itself.*failed for a reason"):
            drill.settled(1, 10)
    finally:
        drill.close()


def test_waiting_in_vain_is_told_as_things_stand_at_the_end() -> None:
    looks: list[str] = []

    with pytest.raises(AssertionError, match="in vain: 1 look"):
        wait_until(lambda: looks.append("in vain"), lambda: f"{len(looks)} look", seconds_max=0)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("strategy", ["sticky", "cooperative-sticky"])
def test_a_kafka_python_member_claims_nothing_that_it_has_lost(strategy: str) -> None:
    from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment
    from kafka.structs import TopicPartition

    from support.members.with_kafka_python import ASSIGNORS, Listener

    assignor = ASSIGNORS[strategy]()
    before = assignor.metadata(["orders"])
    assignor.on_assignment(ConsumerProtocolAssignment(1, [("orders", [0, 1])], b""), 7)
    claimed = assignor.metadata(["orders"])

    Listener(assignor).on_partitions_lost({TopicPartition("orders", 0), TopicPartition("orders", 1)})

    assert claimed != before
    assert assignor.metadata(["orders"]) == before
