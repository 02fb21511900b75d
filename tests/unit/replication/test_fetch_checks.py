"""The leader's checks of a fetch."""

import pytest

from ottla.model.errors import ErrorCode
from ottla.model.ids import LeaderEpoch, Offset
from ottla.replication.events import EpochEndOffset
from ottla.replication.fetch_checks import check_leader_epoch, check_position
from support.bench.toy_epochs import ToyEpochs

OUT_OF_RANGE = ErrorCode.OFFSET_OUT_OF_RANGE


@pytest.mark.parametrize(
    ("requested", "expected"),
    [
        (5, ErrorCode.NONE),
        (-1, ErrorCode.NONE),
        (4, ErrorCode.FENCED_LEADER_EPOCH),
        (6, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_readers_of_another_epoch_are_refused(requested: int, expected: ErrorCode) -> None:
    assert check_leader_epoch(requested, own=5) == expected


def diverges(epoch: int, end: int) -> EpochEndOffset:
    return EpochEndOffset(LeaderEpoch(epoch), Offset(end))


@pytest.mark.parametrize(
    ("fetch_offset", "last_fetched_epoch", "expected"),
    [
        pytest.param(20, 4, ErrorCode.NONE, id="at the end of the latest epoch"),
        pytest.param(20, -1, ErrorCode.NONE, id="no epoch named"),
        pytest.param(12, 2, ErrorCode.NONE, id="at the end of an older epoch"),
        pytest.param(15, 2, diverges(2, 12), id="an older epoch that ended earlier"),
        pytest.param(11, 3, diverges(2, 12), id="an epoch this leader never had"),
        pytest.param(21, 4, diverges(4, 20), id="beyond the end in the latest epoch"),
        pytest.param(20, 5, OUT_OF_RANGE, id="an epoch above all that is known"),
        pytest.param(4, 2, OUT_OF_RANGE, id="below the log start, whatever the epoch"),
        pytest.param(4, 3, OUT_OF_RANGE, id="below the log start, even when it diverges"),
        pytest.param(21, -1, OUT_OF_RANGE, id="beyond the end without an epoch"),
        pytest.param(4, -1, OUT_OF_RANGE, id="below the start without an epoch"),
    ],
)
def test_the_position_decides(
    fetch_offset: int, last_fetched_epoch: int, expected: ErrorCode | EpochEndOffset
) -> None:
    found = check_position(
        ToyEpochs((1, 0), (2, 5), (4, 12)),
        fetch_offset=fetch_offset,
        last_fetched_epoch=last_fetched_epoch,
        log_start_offset=5,
        end_offset=20,
    )

    assert found == expected
