"""What may not happen to a group on Ottla's own client is seen when it happens, and nothing else is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ottla.model.ids import TopicPartition
from ottla.records.record import Record
from ottla.sim.load.clients import Surroundings
from ottla.sim.load.own_workload import GroupReading, OwnMember
from ottla.sim.machine.network import Network
from ottla.sim.truth.history import History, Sent, Violation
from ottla.sim.world import World

P0 = TopicPartition("topic-0", 0)


def a_record(offset: int) -> Record:
    return Record(None, b"%d" % offset, offset=offset)


@pytest.fixture
def reading() -> GroupReading:
    history = History()
    for offset in range(10):
        history.will_send(Sent(b"%d" % offset, "producer", offset, P0))
    reading = GroupReading(history, "group")
    reading.owned(1, "a", frozenset({P0}))
    reading.owned(2, "b", frozenset({P0}))
    reading.committed({P0: 5}, 2, 2)
    return reading


def test_two_owners_in_one_generation(reading: GroupReading) -> None:
    with pytest.raises(Violation, match="two owners"):
        reading.owned(2, "a", frozenset({P0}))


def test_a_record_that_an_earlier_generation_committed(reading: GroupReading) -> None:
    reading.was_given(P0, a_record(5), 3, "a")

    with pytest.raises(Violation, match="again"):
        reading.was_given(P0, a_record(4), 3, "a")


def test_a_member_that_has_not_heard_of_the_next_generation_may_read_on_in_its_own(
    reading: GroupReading,
) -> None:
    reading.was_given(P0, a_record(4), 1, "a")


def test_a_commit_of_an_old_generation_that_is_taken(reading: GroupReading) -> None:
    with pytest.raises(Violation, match="generation 1 was taken"):
        reading.committed({P0: 6}, 1, 2)


class Consumer:
    """A consumer that has joined a generation, has no share of it yet, and reads its last one meanwhile."""

    def __init__(self, member: OwnMember) -> None:
        self.membership = member.core.membership
        self.membership.is_stable = False
        self.membership.generation = 3

    def take(self, count_max: int) -> dict[TopicPartition, list[Record]]:
        return {P0: [a_record(4)]}


def test_a_generation_that_is_joined_and_was_never_shared_out_is_none(reading: GroupReading) -> None:
    """Its coordinator may have died: then its successor counts on from the one before."""
    world = World(1)
    member = OwnMember(
        Surroundings(world, Network(world), {}), 0, "topic-0", reading, ("cooperative-sticky",)
    )
    member._share = (1, frozenset({P0}))
    member.core = Consumer(member)

    member._poll()

    assert reading.given == {P0: {4}}


def test_a_static_member_that_is_started_again_has_its_old_share(reading: GroupReading) -> None:
    world = World(1)
    member = OwnMember(
        Surroundings(world, Network(world), {1: ("broker-1", 9092)}), 0, "topic-0", reading, ("range",)
    )
    member.enter(lambda: None)
    membership = member.core.membership
    membership.config = replace(membership.config, group_instance_id="static")
    membership.is_stable, membership.owned, membership.generation = True, frozenset({P0}), 3

    for member_id in ("static-1", "static-2"):
        membership.member_id, member._share = member_id, (-1, frozenset())
        member.enter(lambda: None)

    with pytest.raises(Violation, match="two owners"):
        reading.owned(3, "a", frozenset({P0}))
