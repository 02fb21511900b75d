"""What may not happen to a consumer group is seen when it happens."""

from __future__ import annotations

import pytest

from ottla.model.ids import TopicPartition
from ottla.sim.truth.groups import GroupTruth, Who
from ottla.sim.truth.history import Violation
from ottla.sim.world import World

P0, P1 = TopicPartition("topic-0", 0), TopicPartition("topic-0", 1)
A, B = Who("a-1"), Who("b-1")
S1, S2, S3 = Who("s-1", "s"), Who("s-2", "s"), Who("s-3", "s")
HERE, ELSEWHERE = 1, 2


class Judge:
    """A truth that is told of requests which are answered at once."""

    def __init__(self) -> None:
        self.world = World(1)
        self.truth = GroupTruth(self.world, "group")

    def later(self) -> None:
        self.world.now_us += 1

    def owns(self, generation: int, who: Who, *partitions: TopicPartition, broker: int = HERE) -> None:
        self.later()
        known = self.truth.known(who)
        self.later()
        self.truth.joined(who, generation, broker, known)
        self.truth.owned(generation, who, list(partitions), broker, known, self.truth.known(who))

    def commits(self, generation: int, who: Who, offset: int) -> None:
        self.truth.committed(generation, who, P0, offset, HERE, self.truth.known(who))

    def fetches(self, generation: int, who: Who, offset: int, *, is_stable: bool = False) -> None:
        self.truth.fetched(generation, who, P0, offset, self.truth.known(who), is_stable=is_stable)

    def beats(self, who: Who, broker: int = HERE) -> None:
        self.truth.heard(who, broker, self.truth.known(who))


@pytest.fixture
def judge() -> Judge:
    judge = Judge()
    judge.owns(1, A, P0)
    judge.owns(1, B, P1)
    return judge


@pytest.fixture
def doubled() -> Judge:
    """A static member came back, and has its place."""
    judge = Judge()
    judge.owns(1, S1, P0)
    judge.commits(1, S1, 7)
    judge.owns(1, S2, P0)
    return judge


def test_two_owners_in_one_generation(judge: Judge) -> None:
    with pytest.raises(Violation, match="two owners"):
        judge.owns(1, B, P0)


def test_another_owner_in_another_generation_is_fine(judge: Judge) -> None:
    judge.owns(2, B, P0)


def test_a_share_that_changes_within_a_generation(judge: Judge) -> None:
    with pytest.raises(Violation, match="share of"):
        judge.owns(1, A)


def test_a_generation_that_comes_after_a_later_one(judge: Judge) -> None:
    judge.owns(3, A)

    with pytest.raises(Violation, match="generation 2"):
        judge.owns(2, A)


def test_a_committed_offset_that_is_forgotten(judge: Judge) -> None:
    judge.commits(1, A, 7)
    judge.fetches(1, A, 7)

    with pytest.raises(Violation, match="committed offset lost"):
        judge.fetches(1, A, 6)


def test_an_offset_that_somebody_was_told_and_that_goes_back(judge: Judge) -> None:
    judge.fetches(1, A, 9)

    with pytest.raises(Violation, match="committed offset lost"):
        judge.fetches(1, A, 8)


def test_an_old_generation_may_be_told_old_offsets(judge: Judge) -> None:
    judge.owns(2, B, P0)
    judge.commits(2, B, 7)

    judge.fetches(1, A, 3)


def test_a_commit_of_an_old_generation_that_is_taken(judge: Judge) -> None:
    judge.owns(2, B, P0)

    with pytest.raises(Violation, match="generation 1"):
        judge.commits(1, A, 7)


def test_a_commit_that_was_on_its_way_when_an_offset_was_told_as_stable(judge: Judge) -> None:
    sent = judge.truth.known(A)
    judge.owns(2, B, P0)
    judge.fetches(2, B, 3, is_stable=True)

    judge.truth.committed(1, A, P0, 3, HERE, sent)
    with pytest.raises(Violation, match="unstable"):
        judge.truth.committed(1, A, P0, 4, HERE, sent)


def test_an_offset_that_was_not_told_as_stable_may_be_overtaken(judge: Judge) -> None:
    sent = judge.truth.known(A)
    judge.owns(2, B, P0)
    judge.fetches(2, B, 3)

    judge.truth.committed(1, A, P0, 4, HERE, sent)


def test_a_static_member_that_comes_back_has_its_share_in_the_same_generation(doubled: Judge) -> None:
    doubled.fetches(1, S2, 7)
    doubled.commits(1, S2, 8)
    doubled.beats(S2)


def test_a_commit_of_a_static_member_that_has_a_successor(doubled: Judge) -> None:
    with pytest.raises(Violation, match="fenced"):
        doubled.commits(1, S1, 8)


def test_a_heartbeat_of_a_static_member_that_has_a_successor(doubled: Judge) -> None:
    with pytest.raises(Violation, match="fenced"):
        doubled.beats(S1)


def test_a_share_for_a_static_member_that_has_a_successor(doubled: Judge) -> None:
    with pytest.raises(Violation, match="fenced"):
        doubled.owns(1, S1, P0)


def test_a_deposed_coordinator_may_not_know_of_a_successor(doubled: Judge) -> None:
    doubled.commits(1, S2, 8)

    doubled.beats(S1, broker=ELSEWHERE)
    doubled.fetches(1, S1, 7)


def test_a_successor_that_is_told_less_than_its_predecessor_committed(doubled: Judge) -> None:
    with pytest.raises(Violation, match="committed offset lost"):
        doubled.fetches(1, S2, 6)


def test_whoever_joined_at_the_same_time_may_be_the_later_one() -> None:
    """Two processes of one instance are answered; which was taken in last is known by what is taken later."""
    judge = Judge()
    judge.owns(1, A, P1)
    sent = {who: judge.truth.known(who) for who in (S1, S2)}
    for who in (S1, S2):
        judge.later()
        judge.truth.joined(who, 1, HERE, sent[who])
        judge.truth.owned(1, who, [P0], HERE, sent[who], sent[who])
    judge.later()
    judge.beats(S1)

    judge.commits(1, S1, 7)

    with pytest.raises(Violation, match="fenced"):
        judge.commits(1, S2, 8)


def test_a_request_that_was_sent_before_the_successor_was_there(doubled: Judge) -> None:
    sent = doubled.truth.known(S2)
    doubled.owns(1, S3, P0)

    doubled.truth.committed(1, S2, P0, 9, HERE, sent)
    doubled.truth.heard(S2, HERE, sent)


def test_an_id_counts_only_once_it_is_written_down(judge: Judge) -> None:
    """Its coordinator dies before that: the next one knows the instance by its old id."""
    judge.owns(2, S1, P0)
    judge.truth.joined(S2, 3, HERE, judge.truth.known(S2))

    judge.beats(S1)
    judge.commits(2, S1, 7)


def test_nothing_is_asked_of_a_group_whose_log_is_lost(doubled: Judge) -> None:
    doubled.truth.is_void = True

    doubled.fetches(1, S2, -1)
    doubled.owns(1, B, P0)
    doubled.commits(1, S1, 8)
