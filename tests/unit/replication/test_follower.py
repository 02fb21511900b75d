"""The follower: what it asks and what it makes of each answer."""

import pytest

from ottla.model.errors import ErrorCode
from ottla.model.ids import LeaderEpoch, Offset
from ottla.replication.effects import (
    AppendFetched,
    BackOff,
    FindLeaderOffset,
    FollowLeader,
    RestartAt,
    StopFetching,
    TruncateTo,
)
from ottla.replication.events import LeaderOffsetFound
from ottla.replication.follower import FetchFrom, PartitionFollower, Phase
from unit.replication.builders import TOPIC_ID, ToyLog, a_follower, an_answer


def found(offset: int, *, earliest: bool = False, error: ErrorCode = ErrorCode.NONE) -> LeaderOffsetFound:
    return LeaderOffsetFound(LeaderEpoch(5), earliest, error, Offset(offset))


def test_a_follower_that_knows_epochs_does_not_cut_to_its_high_watermark() -> None:
    """KIP-101: its high watermark lags behind the leader's, what lies above may be committed."""
    follower = a_follower(ToyLog((3, 0), end_offset=10, high_watermark=4))

    assert list(follower.started()) == []
    assert follower.next_fetch().fetch_offset == 10


def test_a_log_without_any_epoch_is_cut_to_its_high_watermark() -> None:
    follower = a_follower(ToyLog(end_offset=10, high_watermark=4))

    [cut] = follower.started()

    assert cut == TruncateTo(Offset(4), "no leader epoch is known")


def test_it_asks_for_what_follows_its_log_with_the_latest_epoch_in_it() -> None:
    follower = a_follower(ToyLog((1, 0), (3, 6), end_offset=10, log_start_offset=2), epoch=5)

    assert follower.next_fetch() == FetchFrom(
        TOPIC_ID, leader_epoch=5, fetch_offset=10, last_fetched_epoch=3, log_start_offset=2
    )


def test_an_empty_answer_does_not_make_it_forget_its_latest_epoch() -> None:
    """KAFKA-15510."""
    follower = a_follower(ToyLog((3, 0), end_offset=10, high_watermark=10))

    follower.fetched(an_answer(at=10, high_watermark=10))

    assert follower.next_fetch().last_fetched_epoch == 3


def test_records_are_appended_before_the_leaders_offsets_count() -> None:
    log = ToyLog((3, 0), end_offset=10, high_watermark=4)
    follower = a_follower(log)
    answer = an_answer(at=10, high_watermark=15, record_bytes=100)

    assert list(follower.fetched(answer)) == [AppendFetched()]
    log.end_offset = 20

    assert list(follower.appended(answer)) == [FollowLeader(Offset(15), Offset(0))]


def test_the_high_watermark_goes_no_further_than_the_own_log() -> None:
    follower = a_follower(ToyLog((3, 0), end_offset=10, high_watermark=4))

    assert list(follower.fetched(an_answer(at=10, high_watermark=99))) == [
        FollowLeader(Offset(10), Offset(0))
    ]


def test_the_high_watermark_is_never_below_the_own_log_start() -> None:
    follower = a_follower(ToyLog((3, 0), end_offset=10, high_watermark=8, log_start_offset=8))

    assert list(follower.fetched(an_answer(at=10, high_watermark=3))) == []


def test_the_leaders_log_start_is_passed_on() -> None:
    follower = a_follower(ToyLog((3, 0), end_offset=10, high_watermark=10))

    [effect] = follower.fetched(an_answer(at=10, high_watermark=10, log_start_offset=6))

    assert effect == FollowLeader(Offset(10), Offset(6))


def test_a_diverging_epoch_cuts_the_tail_and_moves_nothing_else() -> None:
    """KAFKA-13141, 14704: the high watermark of that answer is about another log."""
    follower = a_follower(ToyLog((1, 0), (3, 6), end_offset=10, high_watermark=4))

    [effect] = follower.fetched(an_answer(at=10, high_watermark=9, diverging=(1, 5)))

    assert isinstance(effect, TruncateTo)
    assert effect.offset == 5


def test_a_diverging_epoch_unknown_here_steps_back_to_the_next_lower_one() -> None:
    follower = a_follower(ToyLog((1, 0), (3, 6), (4, 8), end_offset=10))

    [effect] = follower.fetched(an_answer(at=10, diverging=(2, 5)))

    assert isinstance(effect, TruncateTo)
    assert effect.offset == 6


@pytest.mark.parametrize(("epoch", "at"), [(4, 10), (6, 10), (5, 9)])
def test_an_answer_to_an_earlier_question_is_ignored(epoch: int, at: int) -> None:
    """KAFKA-13207, 8012: a response in flight while the role flips or the log is cut."""
    follower = a_follower(ToyLog((3, 0), end_offset=10, high_watermark=10))

    for error in (0, int(ErrorCode.FENCED_LEADER_EPOCH), int(ErrorCode.OFFSET_OUT_OF_RANGE)):
        answer = an_answer(epoch=epoch, at=at, error=error, record_bytes=5, diverging=(1, 2))
        assert list(follower.fetched(answer)) == []


def test_a_fenced_follower_waits_for_the_controller() -> None:
    follower = a_follower(ToyLog((3, 0), end_offset=10))

    [effect] = follower.fetched(an_answer(at=10, error=int(ErrorCode.FENCED_LEADER_EPOCH)))

    assert effect == StopFetching("FENCED_LEADER_EPOCH")


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.CORRUPT_MESSAGE,
    ],
)
def test_other_errors_are_waited_out(error: ErrorCode) -> None:
    """KAFKA-7786: a stale error must not remove the partition for good."""
    follower = a_follower(ToyLog((3, 0), end_offset=10))

    assert list(follower.fetched(an_answer(at=10, error=int(error)))) == [BackOff(error.name)]


def test_it_fetches_again_when_the_back_off_ends() -> None:
    follower = a_follower(ToyLog((3, 0), end_offset=10))
    follower.back_off(1_000)

    assert not follower.may_fetch(999)
    assert follower.may_fetch(1_000)


def test_a_failed_partition_does_not_come_back_by_waiting() -> None:
    follower = a_follower(ToyLog((3, 0), end_offset=10))
    follower.stop()
    follower.back_off(1_000)

    assert not follower.may_fetch(10_000)


def test_an_offset_out_of_range_asks_where_the_leader_ends() -> None:
    follower = a_follower(ToyLog((3, 0), end_offset=10))

    effects = follower.fetched(an_answer(at=10, error=int(ErrorCode.OFFSET_OUT_OF_RANGE)))

    assert list(effects) == [FindLeaderOffset(earliest=False)]
    assert follower.phase is Phase.FINDING_OFFSET
    assert not follower.may_fetch(10**9)


def a_follower_out_of_range(end_offset: int = 10) -> tuple[ToyLog, PartitionFollower]:
    log = ToyLog((3, 0), end_offset=end_offset)
    follower = a_follower(log)
    follower.fetched(an_answer(at=end_offset, error=int(ErrorCode.OFFSET_OUT_OF_RANGE)))
    return log, follower


def test_a_follower_ahead_of_an_unclean_leader_cuts_to_its_end_and_goes_on() -> None:
    """KAFKA-7414: one such partition must not stop the broker."""
    _, follower = a_follower_out_of_range()

    [effect] = follower.found_leader_offset(found(7))

    assert isinstance(effect, TruncateTo)
    assert effect.offset == 7
    assert follower.may_fetch(0)


def test_a_follower_below_the_leaders_log_start_begins_again_there() -> None:
    _, follower = a_follower_out_of_range()

    assert list(follower.found_leader_offset(found(50))) == [FindLeaderOffset(earliest=True)]
    [effect] = follower.found_leader_offset(found(30, earliest=True))

    assert isinstance(effect, RestartAt)
    assert effect.offset == 30
    assert follower.may_fetch(0)


def test_a_follower_within_the_leaders_log_just_goes_on() -> None:
    _, follower = a_follower_out_of_range()
    follower.found_leader_offset(found(50))

    assert list(follower.found_leader_offset(found(4, earliest=True))) == []
    assert follower.may_fetch(0)


def test_a_leader_that_cannot_tell_its_offset_is_asked_again_later() -> None:
    _, follower = a_follower_out_of_range()

    effects = follower.found_leader_offset(found(-1, error=ErrorCode.NOT_LEADER_OR_FOLLOWER))

    assert list(effects) == [BackOff("NOT_LEADER_OR_FOLLOWER")]


def test_an_offset_found_in_an_earlier_epoch_is_ignored() -> None:
    _, follower = a_follower_out_of_range()

    late = LeaderOffsetFound(LeaderEpoch(4), earliest=False, error=ErrorCode.NONE, offset=Offset(0))

    assert list(follower.found_leader_offset(late)) == []


def test_it_is_behind_until_it_holds_all_that_the_leader_has_committed() -> None:
    log = ToyLog((3, 0), end_offset=10)
    follower = a_follower(log)
    assert follower.is_behind

    follower.appended(an_answer(at=10, high_watermark=12))
    assert follower.is_behind

    log.end_offset = 12
    assert not follower.is_behind
