"""The five selectors (and the first leader of a new partition) as tables."""

import pytest

from ottla.controller.election import (
    Elected,
    NoReplicaOnline,
    Rule,
    elect_for_controlled_shutdown,
    elect_for_new_partition,
    elect_for_offline_partition,
    elect_for_reassigned_partition,
    elect_no_op,
    elect_preferred_replica,
)
from ottla.model.partition_state import LeaderAndIsr, LeaderRecoveryState, ReplicaAssignment

RECOVERED, RECOVERING = LeaderRecoveryState.RECOVERED, LeaderRecoveryState.RECOVERING


def assigned(
    *replicas: int, adding: tuple[int, ...] = (), removing: tuple[int, ...] = ()
) -> ReplicaAssignment:
    return ReplicaAssignment(replicas, adding, removing)  # type: ignore[arg-type]


def led_by(leader: int, *isr: int, recovery: LeaderRecoveryState = RECOVERED) -> LeaderAndIsr:
    return LeaderAndIsr(leader, 5, isr, 7, 1, recovery)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("replicas", "online", "expected"),
    [
        ((1, 2, 3), {1, 2, 3}, (1, (1, 2, 3))),
        ((1, 2, 3), {3, 2}, (2, (2, 3))),
        ((3, 1, 2), {1, 2, 3}, (3, (3, 1, 2))),
        ((1, 2), {4}, None),
    ],
)
def test_new_partition_is_led_by_its_first_online_replica(replicas, online, expected):
    election = elect_for_new_partition(assigned(*replicas), online)

    if expected is None:
        assert election == NoReplicaOnline(Rule.NEW_PARTITION, "no assigned replica is online")
    else:
        leader, isr = expected
        assert election == Elected(leader, isr, isr, RECOVERED, Rule.NEW_PARTITION)


@pytest.mark.parametrize(
    ("replicas", "isr", "online", "leader", "new_isr", "tell"),
    [
        # the next in-sync replica, and the ISR without the dead
        ((1, 2, 3), (1, 2, 3), {2, 3}, 2, (2, 3), (2, 3)),
        # assignment order decides, not the order of the ISR; the ISR keeps its own order
        ((1, 2, 3), (3, 2, 1), {2, 3}, 2, (3, 2), (2, 3)),
        # a live replica outside the ISR is passed over but told
        ((1, 2, 3), (1, 3), {2, 3}, 3, (3,), (2, 3)),
        # the old leader itself when it is back
        ((1, 2, 3), (1,), {1, 2, 3}, 1, (1,), (1, 2, 3)),
        # while a reassignment runs, added replicas count once they are in sync
        ((4, 1, 2), (1, 4), {4, 2}, 4, (4,), (4, 2)),
    ],
)
def test_offline_partition_is_led_by_the_first_online_in_sync_replica(
    replicas, isr, online, leader, new_isr, tell
):
    for unclean in (False, True):
        election = elect_for_offline_partition(
            assigned(*replicas), led_by(1, *isr), online, unclean_allowed=unclean
        )
        assert election == Elected(leader, new_isr, tell, RECOVERED, Rule.OFFLINE)


@pytest.mark.parametrize(
    ("replicas", "isr", "online", "leader", "tell"),
    [
        ((1, 2, 3), (1,), {2, 3}, 2, (2, 3)),
        ((1, 2, 3), (1,), {3}, 3, (3,)),
        ((3, 2, 1), (1,), {2, 3}, 3, (3, 2)),
    ],
)
def test_unclean_election_takes_the_first_online_replica_alone_and_marks_it_recovering(
    replicas, isr, online, leader, tell
):
    election = elect_for_offline_partition(
        assigned(*replicas), led_by(-1, *isr), online, unclean_allowed=True
    )

    assert election == Elected(leader, (leader,), tell, RECOVERING, Rule.UNCLEAN)


def test_offline_partition_without_an_in_sync_replica_waits_when_unclean_election_is_off():
    election = elect_for_offline_partition(assigned(1, 2, 3), led_by(1, 1), {2, 3})

    assert election == NoReplicaOnline(
        Rule.OFFLINE, "no in-sync replica is online and unclean election is not allowed"
    )


@pytest.mark.parametrize("unclean", [False, True])
def test_offline_partition_without_any_online_replica_waits(unclean: bool):
    election = elect_for_offline_partition(
        assigned(1, 2, 3), led_by(1, 1, 2), {8, 9}, unclean_allowed=unclean
    )

    assert election == NoReplicaOnline(Rule.OFFLINE, "no replica is online")


def test_clean_election_keeps_the_recovery_state():
    election = elect_for_offline_partition(assigned(1, 2), led_by(1, 1, 2, recovery=RECOVERING), {2})

    assert isinstance(election, Elected)
    assert election.leader_recovery_state is RECOVERING


@pytest.mark.parametrize(
    ("assignment", "isr", "online", "expected"),
    [
        (assigned(4, 5, 1, 2, adding=(4, 5), removing=(1, 2)), (1, 2, 4, 5), {1, 2, 4, 5}, (4, (4, 5))),
        (assigned(4, 5, 1, 2, adding=(4, 5), removing=(1, 2)), (1, 2, 5), {1, 2, 4, 5}, (5, (4, 5))),
        (assigned(4, 5, 1, 2, adding=(4, 5), removing=(1, 2)), (1, 2, 4, 5), {1, 2, 5}, (5, (4, 5))),
        (assigned(4, 5, 1, 2, adding=(4, 5), removing=(1, 2)), (1, 2), {1, 2, 4, 5}, None),
        (assigned(4, 1, adding=(4,), removing=(1,)), (1, 4), {1}, None),
    ],
)
def test_reassigned_partition_is_led_by_the_first_online_in_sync_replica_of_the_new_assignment(
    assignment, isr, online, expected
):
    election = elect_for_reassigned_partition(assignment, led_by(1, *isr), online)

    if expected is None:
        assert election == NoReplicaOnline(
            Rule.REASSIGNED, "no replica of the new assignment is both online and in sync"
        )
    else:
        leader, tell = expected
        assert election == Elected(leader, isr, tell, RECOVERED, Rule.REASSIGNED)


@pytest.mark.parametrize(
    ("leader", "isr", "online", "expected"),
    [
        (2, (2, 3, 1), {1, 2, 3}, 1),
        (-1, (1,), {1, 2}, 1),
        (1, (1, 2, 3), {1, 2, 3}, "the preferred replica leads already"),
        (2, (2, 3, 1), {2, 3}, "the preferred replica is not online"),
        (2, (2, 3), {1, 2, 3}, "the preferred replica is not in sync"),
    ],
)
def test_preferred_replica_leads_only_when_online_in_sync_and_not_leading(leader, isr, online, expected):
    election = elect_preferred_replica(assigned(1, 2, 3), led_by(leader, *isr), online)

    if isinstance(expected, str):
        assert election == NoReplicaOnline(Rule.PREFERRED, expected)
    else:
        assert election == Elected(expected, isr, (1, 2, 3), RECOVERED, Rule.PREFERRED)


@pytest.mark.parametrize(
    ("isr", "registered", "shutting_down", "expected"),
    [
        ((1, 2, 3), {1, 2, 3}, {1}, (2, (2, 3), (1, 2, 3))),
        ((1, 2, 3), {1, 2, 3}, {1, 2}, (3, (3,), (1, 2, 3))),
        ((3, 1, 2), {1, 3}, {1}, (3, (3, 2), (1, 3))),
        ((1,), {1, 2, 3}, {1}, None),
        ((1, 2), {1, 2, 3}, {1, 2}, None),
        ((1, 2), {1, 3}, {1}, None),
    ],
)
def test_controlled_shutdown_hands_over_to_one_that_stays(isr, registered, shutting_down, expected):
    election = elect_for_controlled_shutdown(assigned(1, 2, 3), led_by(1, *isr), registered, shutting_down)

    if expected is None:
        assert isinstance(election, NoReplicaOnline)
        assert election.rule is Rule.CONTROLLED_SHUTDOWN
    else:
        leader, new_isr, tell = expected
        assert election == Elected(leader, new_isr, tell, RECOVERED, Rule.CONTROLLED_SHUTDOWN)


def test_no_op_selector_warns_and_returns_what_is():
    election = elect_no_op(assigned(1, 2, 3), led_by(3, 3, 2))

    assert isinstance(election, Elected)
    assert (election.leader, election.isr, election.tell) == (3, (3, 2), (1, 2, 3))
    assert "no-op" in election.warning
