"""Who is in sync: shrinking by lag, growing by catching up, and the controller's answers."""

import pytest

from ottla.model.errors import ErrorCode
from ottla.model.ids import BrokerId, LeaderEpoch
from ottla.replication.effects import IsrMember, ProposeIsr
from ottla.replication.events import IsrChangeAnswered
from ottla.replication.leader import PartitionLeader
from unit.replication.builders import (
    EVERYONE,
    FAST,
    LAG_TIME_MAX_MS,
    LEADER,
    OUTSIDER,
    SLOW,
    a_leader,
    an_election,
)

EPOCH = LeaderEpoch(5)


def proposed(leader: PartitionLeader, now_ms: int = LAG_TIME_MAX_MS + 1) -> ProposeIsr:
    [proposal] = leader.check_lag(now_ms)
    assert isinstance(proposal, ProposeIsr)
    return proposal


def a_leader_with_a_pending_shrink() -> tuple[PartitionLeader, ProposeIsr]:
    leader = a_leader()
    leader.appended(10, 0, EVERYONE)
    leader.follower_fetched(FAST, 10, 0, LAG_TIME_MAX_MS, EVERYONE)
    return leader, proposed(leader)


def test_a_member_that_fell_behind_for_too_long_is_proposed_for_removal() -> None:
    leader = a_leader()
    leader.appended(10, 0, EVERYONE)
    leader.follower_fetched(FAST, 10, 0, 1, EVERYONE)

    assert list(leader.check_lag(LAG_TIME_MAX_MS)) == []
    proposal = proposed(leader)

    assert proposal.isr == (LEADER, FAST)
    assert (proposal.leader_epoch, proposal.partition_epoch) == (EPOCH, 0)


def test_an_idle_member_at_the_leaders_end_stays_for_ever() -> None:
    """KAFKA-4313: nothing is written, so nobody lags."""
    leader = a_leader(end_offset=10, high_watermark=10)
    leader.follower_fetched(FAST, 10, 0, 1, EVERYONE)
    leader.follower_fetched(SLOW, 10, 0, 1, EVERYONE)

    assert list(leader.check_lag(1_000 * LAG_TIME_MAX_MS)) == []


def test_a_member_that_always_reaches_the_previous_end_stays_in_sync_under_steady_writes() -> None:
    leader = a_leader(isr=(LEADER, FAST), replicas=(LEADER, FAST))
    for step in range(1, 100):
        now_ms = step * 1_000
        leader.appended(step * 10, now_ms, EVERYONE)
        leader.follower_fetched(FAST, step * 10 - 5, 0, now_ms, EVERYONE)

    assert list(leader.check_lag(100_000)) == []


def test_a_member_that_fetches_but_never_catches_up_leaves() -> None:
    leader = a_leader(isr=(LEADER, FAST), replicas=(LEADER, FAST))
    for step in range(1, 100):
        leader.appended(step * 10, step * 1_000, EVERYONE)
        leader.follower_fetched(FAST, step, 0, step * 1_000, EVERYONE)

    assert proposed(leader, 100_000).isr == (LEADER,)


def test_a_session_parked_at_the_end_was_caught_up_until_the_log_grew() -> None:
    leader = a_leader(isr=(LEADER, FAST), replicas=(LEADER, FAST), end_offset=10, high_watermark=10)
    leader.follower_fetched(FAST, 10, 0, 1, EVERYONE)

    leader.follower_was_caught_up(FAST, 10 * LAG_TIME_MAX_MS)
    leader.appended(20, 10 * LAG_TIME_MAX_MS + 1, EVERYONE)

    assert list(leader.check_lag(10 * LAG_TIME_MAX_MS + 2)) == []


def test_a_session_parked_below_the_end_says_nothing_about_being_caught_up() -> None:
    leader = a_leader(isr=(LEADER, FAST), replicas=(LEADER, FAST), end_offset=10, high_watermark=10)
    leader.follower_fetched(FAST, 4, 0, 1, EVERYONE)

    leader.follower_was_caught_up(FAST, 10 * LAG_TIME_MAX_MS)

    assert proposed(leader, 10 * LAG_TIME_MAX_MS).isr == (LEADER,)


def test_a_caught_up_live_replica_is_proposed_as_the_last_member() -> None:
    leader = a_leader(isr=(LEADER, SLOW))

    [proposal] = leader.follower_fetched(FAST, 0, 0, 1, EVERYONE, broker_epoch=77)

    assert isinstance(proposal, ProposeIsr)
    assert proposal.isr == (LEADER, SLOW, FAST)
    assert proposal.members[-1] == IsrMember(FAST, 77)


def test_a_replica_does_not_join_before_it_reaches_the_start_of_the_leaders_epoch() -> None:
    """KAFKA-7128: at the high watermark its tail may still be another leader's."""
    leader = a_leader(isr=(LEADER,), end_offset=10, high_watermark=0, min_insync_replicas=2)
    assert leader.high_watermark == 0

    assert list(leader.follower_fetched(FAST, 9, 0, 1, EVERYONE)) == []
    [proposal] = leader.follower_fetched(FAST, 10, 0, 1, EVERYONE)

    assert isinstance(proposal, ProposeIsr)


def test_a_replica_below_the_high_watermark_does_not_join() -> None:
    leader = a_leader(isr=(LEADER,))
    leader.appended(10, 0, EVERYONE)

    assert list(leader.follower_fetched(FAST, 9, 0, 1, EVERYONE)) == []


def test_a_deregistered_replica_is_served_but_does_not_join() -> None:
    leader = a_leader(isr=(LEADER,))

    assert list(leader.follower_fetched(FAST, 0, 0, 1, frozenset({LEADER}))) == []


def test_a_replica_that_was_not_alive_joins_with_its_next_fetch_once_it_is() -> None:
    leader = a_leader(isr=(LEADER,))
    leader.follower_fetched(FAST, 0, 0, 1, frozenset({LEADER}))

    [proposal] = leader.follower_fetched(FAST, 0, 0, 2, EVERYONE)

    assert isinstance(proposal, ProposeIsr)


def test_there_is_never_a_second_change_in_flight() -> None:
    leader, _ = a_leader_with_a_pending_shrink()

    assert list(leader.check_lag(10 * LAG_TIME_MAX_MS)) == []
    effects = leader.follower_fetched(SLOW, 10, 0, 10 * LAG_TIME_MAX_MS, EVERYONE)
    assert not any(isinstance(effect, ProposeIsr) for effect in effects)


def test_strangers_may_not_fetch_as_followers() -> None:
    assert not a_leader().may_fetch(OUTSIDER, 1)


def test_an_earlier_life_of_a_restarted_follower_may_not_fetch() -> None:
    """KIP-903: its word may be about a disk that is gone."""
    leader = a_leader()
    leader.follower_fetched(FAST, 0, 0, 1, EVERYONE, broker_epoch=20)

    assert leader.may_fetch(FAST, 20)
    assert leader.may_fetch(FAST, 21)
    assert not leader.may_fetch(FAST, 19)
    assert leader.may_fetch(FAST, -1), "followers before Fetch 15 name no epoch"


def test_a_restarted_follower_with_an_empty_disk_is_not_taken_for_caught_up() -> None:
    """KAFKA-15221: the old life's fetches must not keep the new one in the ISR."""
    leader = a_leader(isr=(LEADER, FAST), replicas=(LEADER, FAST), end_offset=10, high_watermark=10)
    leader.follower_fetched(FAST, 10, 0, 1_000, EVERYONE, broker_epoch=20)

    leader.follower_fetched(FAST, 0, 0, 1_200, EVERYONE, broker_epoch=30)

    assert proposed(leader, 1_300).isr == (LEADER,)


def test_success_commits_the_isr_and_the_new_partition_epoch() -> None:
    leader, proposal = a_leader_with_a_pending_shrink()

    leader.isr_change_answered(
        IsrChangeAnswered(EPOCH, proposal.change, ErrorCode.NONE, EPOCH, 1, (LEADER, FAST)), 0, EVERYONE
    )

    assert leader.isr.committed == (LEADER, FAST)
    assert leader.isr.pending is None
    assert leader.partition_epoch == 1


def test_success_without_a_new_version_commits_too() -> None:
    """KAFKA-14144: the first answer was lost, the retry finds it already so."""
    leader, proposal = a_leader_with_a_pending_shrink()

    leader.isr_change_answered(
        IsrChangeAnswered(EPOCH, proposal.change, ErrorCode.NONE, EPOCH, 0, (LEADER, FAST)), 0, EVERYONE
    )

    assert leader.isr.pending is None


@pytest.mark.parametrize(("epoch", "partition_epoch"), [(6, 1), (4, 1), (5, -1)])
def test_success_of_another_epoch_or_an_older_version_is_ignored(epoch: int, partition_epoch: int) -> None:
    leader, proposal = a_leader_with_a_pending_shrink()

    leader.isr_change_answered(
        IsrChangeAnswered(
            EPOCH, proposal.change, ErrorCode.NONE, LeaderEpoch(epoch), partition_epoch, (LEADER,)
        ),
        0,
        EVERYONE,
    )

    assert leader.isr.pending is not None
    assert leader.isr.committed == (LEADER, FAST, SLOW)


@pytest.mark.parametrize("error", [ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA])
def test_a_refused_member_is_given_up(error: ErrorCode) -> None:
    """KIP-841: the controller knows that the broker is shutting down."""
    leader = a_leader(isr=(LEADER,))
    [proposal] = leader.follower_fetched(FAST, 0, 0, 1, EVERYONE)
    assert isinstance(proposal, ProposeIsr)

    leader.isr_change_answered(IsrChangeAnswered(EPOCH, proposal.change, error), 2, EVERYONE)

    assert leader.isr.pending is None
    assert leader.isr.maximal == {LEADER}


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NEW_LEADER_ELECTED,
    ],
)
def test_an_error_that_only_a_newer_decision_explains_leaves_the_change_pending(error: ErrorCode) -> None:
    leader, proposal = a_leader_with_a_pending_shrink()

    effects = leader.isr_change_answered(IsrChangeAnswered(EPOCH, proposal.change, error), 2, EVERYONE)

    assert list(effects) == []
    assert leader.isr.pending is not None
    assert leader.isr.maximal == {LEADER, FAST, SLOW}


def test_any_other_error_sends_the_same_proposal_again() -> None:
    leader, proposal = a_leader_with_a_pending_shrink()

    [again] = leader.isr_change_answered(
        IsrChangeAnswered(EPOCH, proposal.change, ErrorCode.UNKNOWN_SERVER_ERROR), 2, EVERYONE
    )

    assert isinstance(again, ProposeIsr)
    assert (again.change, again.isr) == (proposal.change, proposal.isr)


def test_a_new_election_replaces_a_pending_change_and_its_late_answer_means_nothing() -> None:
    """KAFKA-12686: neither cleared twice nor never."""
    leader, proposal = a_leader_with_a_pending_shrink()

    leader.elected(
        an_election(epoch=6, partition_epoch=3, end_offset=10, isr=(LEADER, FAST, SLOW)), 50_000, EVERYONE
    )
    for error in (ErrorCode.NONE, ErrorCode.INELIGIBLE_REPLICA, ErrorCode.UNKNOWN_SERVER_ERROR):
        late = IsrChangeAnswered(EPOCH, proposal.change, error, EPOCH, 1, (LEADER,))
        assert list(leader.isr_change_answered(late, 50_001, EVERYONE)) == []

    assert leader.isr.committed == (LEADER, FAST, SLOW)
    assert leader.partition_epoch == 3
    assert leader.isr.pending is None


def test_an_answer_to_an_earlier_leadership_means_nothing_to_a_new_one() -> None:
    leader, proposal = a_leader_with_a_pending_shrink()

    answer = IsrChangeAnswered(LeaderEpoch(2), proposal.change, ErrorCode.INELIGIBLE_REPLICA)
    leader.isr_change_answered(answer, 0, EVERYONE)

    assert leader.isr.pending is not None


def test_a_replica_being_added_does_not_make_the_partition_under_replicated() -> None:
    leader = a_leader(isr=(LEADER, FAST))
    leader.elected(
        an_election(epoch=6, isr=(LEADER, FAST), adding=(SLOW,)), 0, frozenset({LEADER, FAST, BrokerId(3)})
    )

    assert not leader.is_under_replicated


def test_a_follower_outside_the_isr_is_not_back_before_it_fetches_after_a_re_election() -> None:
    leader = a_leader(isr=(LEADER, FAST), end_offset=10, high_watermark=10)
    leader.isr.propose(1, (LEADER, FAST))
    leader.follower_fetched(SLOW, 10, 0, 1, EVERYONE)

    leader.elected(an_election(epoch=6, isr=(LEADER, FAST), end_offset=10, high_watermark=10), 2, EVERYONE)
    leader.appended(20, 3, EVERYONE)
    leader.follower_fetched(FAST, 20, 0, 4, EVERYONE)

    assert leader.high_watermark == 20
