"""Where a follower cuts its log."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.model.ids import LeaderEpoch, Offset
from ottla.replication.events import EpochEndOffset
from ottla.replication.truncation import plan_truncation
from support.bench.toy_epochs import ToyEpochs


@pytest.mark.parametrize(
    ("leader", "own", "end_offset", "expected"),
    [
        pytest.param((-1, -1), [(1, 0)], 20, 7, id="leader knows nothing: to the fetch offset"),
        pytest.param((-1, 12), [(1, 0)], 20, 12, id="leader knows no epoch: to its end"),
        pytest.param((-1, 30), [(1, 0)], 20, 20, id="never beyond the own end"),
        pytest.param((3, 12), [], 20, 12, id="own epochs unknown: to the leader's end"),
        pytest.param((5, 12), [(1, 0), (3, 8)], 20, 12, id="epoch above all own: leader's end"),
        pytest.param((3, 12), [(1, 0), (3, 8)], 20, 12, id="same epoch: the earlier end"),
        pytest.param((3, 30), [(1, 0), (3, 8), (4, 15)], 20, 15, id="same epoch, own ends first"),
        pytest.param((2, 12), [(1, 0), (3, 8)], 20, 8, id="epoch unknown here: back to the next lower"),
        pytest.param((2, 6), [(1, 0), (3, 8)], 20, 8, id="and the leader's end is then no guide"),
    ],
)
def test_the_cut_follows_the_epochs(
    leader: tuple[int, int], own: list[tuple[int, int]], end_offset: int, expected: int
) -> None:
    answer = EpochEndOffset(LeaderEpoch(leader[0]), Offset(leader[1]))

    cut = plan_truncation(answer, ToyEpochs(*own), fetch_offset=7, end_offset=end_offset)

    assert cut == expected


class Log:
    """A log as the epoch of each of its records."""

    def __init__(self, epochs: list[int]) -> None:
        self.epochs = epochs

    def lookup(self) -> ToyEpochs:
        starts: dict[int, int] = {}
        for offset, epoch in enumerate(self.epochs):
            starts.setdefault(epoch, offset)
        return ToyEpochs(*sorted(starts.items()))


@st.composite
def two_histories(draw: st.DrawFn) -> tuple[Log, Log]:
    """Two logs as a cluster can make them: each epoch was written by one leader only, so where
    both hold records of one epoch, one holds a prefix of the other's and all before is common."""
    shared = draw(st.lists(st.integers(0, 3), max_size=6).map(sorted))
    first_only = draw(st.lists(st.sampled_from([4, 6, 8]), max_size=6).map(sorted))
    second_only = draw(st.lists(st.sampled_from([5, 7, 9]), max_size=6).map(sorted))
    return Log([*shared, *first_only]), Log([*shared, *second_only])


@given(two_histories())
def test_however_epochs_were_lost_the_cuts_end_in_a_prefix_of_the_leaders_log(logs: tuple[Log, Log]) -> None:
    """KIP-279: two quick failovers need more than one step back."""
    follower, leader = logs
    for _ in range(20):
        mine = follower.lookup()
        epoch, end = leader.lookup().end_offset_for(mine.latest_epoch, len(leader.epochs))
        if epoch == -1 and len(follower.epochs) > len(leader.epochs):
            # Above all of the leader's: the leader says OFFSET_OUT_OF_RANGE, and its end decides.
            follower.epochs = follower.epochs[: len(leader.epochs)]
            continue
        if epoch == -1 or (epoch == mine.latest_epoch and end >= len(follower.epochs)):
            break
        answer = EpochEndOffset(LeaderEpoch(epoch), Offset(end))
        size = len(follower.epochs)
        cut = plan_truncation(answer, mine, fetch_offset=size, end_offset=size)
        follower.epochs = follower.epochs[:cut]

    if follower.lookup().latest_epoch <= leader.lookup().latest_epoch:
        assert follower.epochs == leader.epochs[: len(follower.epochs)]
