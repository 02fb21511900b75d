"""The high watermark: whose end counts, when it moves and when it is frozen."""

import pytest

from ottla.model.errors import ErrorCode
from ottla.model.ids import BrokerId, LeaderEpoch, Offset
from ottla.replication.effects import AssignEpoch, HighWatermarkAdvanced, ProposeIsr
from ottla.replication.events import IsrChangeAnswered
from ottla.replication.leader import PartitionLeader
from unit.replication.builders import (
    EVERYONE,
    FAST,
    LAG_TIME_MAX_MS,
    LEADER,
    SLOW,
    a_leader,
    an_election,
)


def test_a_leader_that_is_the_whole_isr_moves_the_high_watermark_with_its_append() -> None:
    leader = a_leader(isr=(LEADER,), replicas=(LEADER,))

    effects = leader.appended(10, 0, EVERYONE)

    assert effects == [HighWatermarkAdvanced(Offset(10))]


def test_the_high_watermark_waits_for_the_slowest_member_of_the_isr() -> None:
    leader = a_leader()
    leader.appended(10, 0, EVERYONE)

    assert list(leader.follower_fetched(FAST, 10, 0, 1, EVERYONE)) == []
    assert list(leader.follower_fetched(SLOW, 4, 0, 1, EVERYONE)) == [HighWatermarkAdvanced(Offset(4))]
    assert list(leader.follower_fetched(SLOW, 10, 0, 2, EVERYONE)) == [HighWatermarkAdvanced(Offset(10))]


def test_a_replica_outside_the_isr_that_lags_does_not_hold_back_the_high_watermark() -> None:
    leader = a_leader(isr=(LEADER, FAST))
    leader.appended(10, 0, EVERYONE)

    effects = leader.follower_fetched(FAST, 10, 0, 1, EVERYONE)

    assert list(effects) == [HighWatermarkAdvanced(Offset(10))]


def test_a_live_replica_that_is_about_to_join_holds_back_the_high_watermark() -> None:
    """It was at the end a moment ago: moving on without it would keep it out for ever."""
    leader = a_leader(isr=(LEADER, FAST), end_offset=10, high_watermark=10)
    leader.isr.propose(1, (LEADER, FAST))
    leader.follower_fetched(SLOW, 10, 0, 100, EVERYONE)
    leader.appended(20, 101, EVERYONE)

    assert list(leader.follower_fetched(FAST, 20, 0, 102, EVERYONE)) == []
    assert list(leader.follower_fetched(FAST, 20, 0, 103, EVERYONE - {SLOW})) == []
    leader.appended(20, 104, EVERYONE - {SLOW})
    assert leader.high_watermark == 20


def test_a_replica_about_to_join_is_waited_for_no_longer_than_the_allowed_lag() -> None:
    leader = a_leader(isr=(LEADER, FAST), end_offset=10, high_watermark=10)
    leader.isr.propose(1, (LEADER, FAST))
    leader.follower_fetched(SLOW, 10, 0, 100, EVERYONE)
    leader.appended(20, 101, EVERYONE)

    effects = leader.follower_fetched(FAST, 20, 0, 101 + LAG_TIME_MAX_MS, EVERYONE)

    assert list(effects) == [HighWatermarkAdvanced(Offset(20))]


def test_the_high_watermark_never_goes_back() -> None:
    leader = a_leader(end_offset=10, high_watermark=10)
    leader.appended(12, 0, EVERYONE)

    leader.follower_fetched(FAST, 3, 0, 1, EVERYONE)
    leader.follower_fetched(SLOW, 3, 0, 1, EVERYONE)

    assert leader.high_watermark == 10


def test_the_high_watermark_is_frozen_while_fewer_than_the_minimum_are_in_sync() -> None:
    """KAFKA-15583."""
    leader = a_leader(isr=(LEADER,), min_insync_replicas=2)

    effects = leader.appended(10, 0, EVERYONE)

    assert list(effects) == []
    assert leader.high_watermark == 0


def test_the_minimum_is_never_more_than_there_are_replicas() -> None:
    leader = a_leader(isr=(LEADER,), replicas=(LEADER,), min_insync_replicas=2)

    assert leader.may_append(-1) is ErrorCode.NONE
    assert leader.appended(10, 0, EVERYONE) == [HighWatermarkAdvanced(Offset(10))]


def test_a_new_leader_waits_for_a_fetch_of_every_member_before_it_moves_the_high_watermark() -> None:
    leader = PartitionLeader(LEADER, min_insync_replicas=1, lag_time_max_ms=LAG_TIME_MAX_MS)

    effects = leader.elected(an_election(end_offset=10, high_watermark=7), 0, EVERYONE)

    assert list(effects) == [AssignEpoch(LeaderEpoch(5), Offset(10))]
    assert leader.high_watermark == 7


def test_a_new_leader_alone_in_its_isr_commits_its_whole_log() -> None:
    leader = PartitionLeader(LEADER, min_insync_replicas=1, lag_time_max_ms=LAG_TIME_MAX_MS)

    effects = leader.elected(an_election(isr=(LEADER,), end_offset=10, high_watermark=7), 0, EVERYONE)

    assert list(effects) == [AssignEpoch(LeaderEpoch(5), Offset(10)), HighWatermarkAdvanced(Offset(10))]


def test_a_leader_notes_the_start_of_its_epoch_even_before_it_writes_in_it() -> None:
    """KAFKA-7415: else it answers questions about older epochs with its own end."""
    leader = a_leader(end_offset=10)

    effects = leader.elected(an_election(epoch=6, end_offset=10), 0, EVERYONE)

    assert AssignEpoch(LeaderEpoch(6), Offset(10)) in effects


def test_a_pending_member_counts_for_the_high_watermark_at_once() -> None:
    """KAFKA-8836, the AsyncIsr case: the controller may have written it already."""
    leader = a_leader(isr=(LEADER, FAST), end_offset=10, high_watermark=10)
    leader.follower_fetched(FAST, 10, 0, 1, EVERYONE)

    [proposal] = leader.follower_fetched(SLOW, 10, 0, 1, EVERYONE)
    leader.appended(20, 2, frozenset())
    effects = leader.follower_fetched(FAST, 20, 0, 3 + LAG_TIME_MAX_MS, frozenset())

    assert isinstance(proposal, ProposeIsr)
    assert proposal.isr == (LEADER, FAST, SLOW)
    assert list(effects) == []
    assert leader.high_watermark == 10


def test_a_pending_member_does_not_count_as_in_sync_for_the_minimum() -> None:
    leader = a_leader(isr=(LEADER,), replicas=(LEADER, FAST), min_insync_replicas=2)

    [proposal] = leader.follower_fetched(FAST, 0, 0, 1, EVERYONE)

    assert isinstance(proposal, ProposeIsr)
    assert leader.may_append(-1) is ErrorCode.NOT_ENOUGH_REPLICAS
    leader.appended(10, 2, EVERYONE)
    leader.follower_fetched(FAST, 10, 0, 3, EVERYONE)
    assert leader.high_watermark == 0


def test_a_member_about_to_leave_holds_the_high_watermark_until_the_controller_agrees() -> None:
    """KAFKA-13091: and then it must move at once, or an acks=all producer waits for nothing."""
    leader = a_leader(isr=(LEADER, SLOW), replicas=(LEADER, SLOW))
    leader.appended(10, 1, EVERYONE)
    [proposal] = leader.check_lag(LAG_TIME_MAX_MS + 1)
    assert isinstance(proposal, ProposeIsr)

    leader.appended(20, LAG_TIME_MAX_MS + 2, EVERYONE)
    assert leader.high_watermark == 0

    answer = IsrChangeAnswered(LeaderEpoch(5), proposal.change, ErrorCode.NONE, LeaderEpoch(5), 1, (LEADER,))
    effects = leader.isr_change_answered(answer, LAG_TIME_MAX_MS + 3, EVERYONE)
    assert list(effects) == [HighWatermarkAdvanced(Offset(20))]


def test_lowering_the_minimum_frees_a_frozen_high_watermark() -> None:
    leader = a_leader(isr=(LEADER,), min_insync_replicas=2)
    leader.appended(10, 0, EVERYONE)

    effects = leader.settings_changed(1, 1, frozenset())

    assert list(effects) == [HighWatermarkAdvanced(Offset(10))]


def test_a_re_elected_leader_does_not_count_what_its_followers_held_in_its_last_epoch() -> None:
    """Simulation seed 525303934: epoch 6 was another's, unheard of here, and the follower cut its log."""
    leader = a_leader(isr=(LEADER, FAST, SLOW))
    leader.appended(20, 0, EVERYONE)
    leader.follower_fetched(FAST, 20, 0, 1, EVERYONE)

    effects = leader.elected(
        an_election(epoch=7, isr=(LEADER, FAST), end_offset=20, high_watermark=0), 3, EVERYONE
    )

    assert list(effects) == [AssignEpoch(LeaderEpoch(7), Offset(20))]
    assert leader.high_watermark == 0
    assert list(leader.follower_fetched(FAST, 12, 0, 4, EVERYONE)) == [HighWatermarkAdvanced(Offset(12))]


def test_a_re_elected_leader_still_refuses_an_earlier_life_of_a_follower() -> None:
    leader = a_leader(isr=(LEADER, FAST))
    leader.follower_fetched(FAST, 0, 0, 1, EVERYONE, broker_epoch=8)

    leader.elected(an_election(epoch=6, isr=(LEADER, FAST)), 3, EVERYONE)

    assert not leader.may_fetch(FAST, broker_epoch=7)
    assert leader.may_fetch(FAST, broker_epoch=8)


def test_isr_members_that_are_no_replicas_do_not_stop_the_leader() -> None:
    """KAFKA-9672: a reassignment's LeaderAndIsr may name them."""
    stranger = BrokerId(7)
    leader = a_leader(isr=(LEADER, stranger), replicas=(LEADER, FAST))

    effects = leader.appended(10, 0, EVERYONE)

    assert list(effects) == [HighWatermarkAdvanced(Offset(10))]
    [proposal] = leader.check_lag(1)
    assert isinstance(proposal, ProposeIsr)
    assert proposal.isr == (LEADER,)


@pytest.mark.parametrize(
    ("acks", "isr", "expected"),
    [
        (-1, (LEADER,), ErrorCode.NOT_ENOUGH_REPLICAS),
        (1, (LEADER,), ErrorCode.NONE),
        (0, (LEADER,), ErrorCode.NONE),
        (-1, (LEADER, FAST), ErrorCode.NONE),
    ],
)
def test_only_acks_all_is_refused_under_min_isr(
    acks: int, isr: tuple[BrokerId, ...], expected: ErrorCode
) -> None:
    leader = a_leader(isr=isr, min_insync_replicas=2)

    assert leader.may_append(acks) is expected


def test_an_acks_all_producer_hears_of_its_records_when_the_high_watermark_has_passed_them() -> None:
    leader = a_leader(isr=(LEADER, FAST), min_insync_replicas=2)
    leader.appended(10, 0, EVERYONE)
    assert leader.append_outcome(10) is None

    leader.follower_fetched(FAST, 10, 0, 1, EVERYONE)

    assert leader.append_outcome(10) is ErrorCode.NONE


def test_an_acks_all_producer_hears_when_the_isr_shrank_below_the_minimum_after_its_append() -> None:
    leader = a_leader(isr=(LEADER, FAST), min_insync_replicas=2, end_offset=0)
    leader.appended(10, 0, EVERYONE)
    leader.follower_fetched(FAST, 10, 0, 1, EVERYONE)

    leader.isr.commit((LEADER,))

    assert leader.append_outcome(10) is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND


def test_clients_are_not_told_the_latest_offset_before_the_epoch_start_is_committed() -> None:
    leader = a_leader(isr=(LEADER, FAST), end_offset=10, high_watermark=7)
    assert not leader.may_tell_latest_offset()

    leader.follower_fetched(FAST, 10, 0, 1, EVERYONE)

    assert leader.may_tell_latest_offset()


def test_delete_records_waits_for_the_lowest_log_start_of_the_live_replicas() -> None:
    leader = a_leader(end_offset=10, high_watermark=10)
    leader.follower_fetched(FAST, 10, 5, 1, EVERYONE)
    leader.follower_fetched(SLOW, 10, 2, 1, EVERYONE)

    assert leader.low_watermark(6, EVERYONE) == 2
    assert leader.low_watermark(6, EVERYONE - {SLOW}) == 5
