"""Who holds the last stable offset, and what ends that: one sentence for each state."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ottla.cli.inspect.unstable import Holder, holder_lines
from ottla.insight.history.story import history_lines

OPEN = Holder(
    partition="orders-of-all-0",
    last_stable_offset=42,
    producer_id=7,
    producer_epoch=3,
    last_written_ms=5_000,
    transactional_id="payments",
    coordinator=1,
    state="Ongoing",
    start_ms=0,
    timeout_ms=60_000,
)
UNKNOWN = replace(OPEN, transactional_id=None, coordinator=None, state="")


@pytest.mark.parametrize(
    ("holder", "expected"),
    [
        (
            OPEN,
            "aborts it after 1970-01-01 00:01:00.000; to abort it now: `ottla transactions force-t",
        ),
        (replace(OPEN, is_prepared=True), "waits for a decision: `ottla transactions complete"),
        (replace(OPEN, state="PrepareCommit"), "in state PrepareCommit: its end is on the way"),
        (UNKNOWN, "abort --topic orders-of-all --partition 0 --start-offset 42`"),
    ],
    ids=["open", "prepared", "ending", "hanging"],
)
def test_the_remedy_fits_the_state(holder: Holder, expected: str) -> None:
    lines = holder_lines(holder)

    assert "stop at offset 42" in lines[0]
    assert ("'payments' (producer 7, epoch 3), open since" in lines[0]) is (holder is not UNKNOWN)
    assert expected in lines[1]


def test_a_fenced_transaction_is_part_of_the_history() -> None:
    row = {
        "kind": "transaction fenced",
        "transactional_id": "payments",
        "producer_id": 7,
        "producer_epoch": 3,
        "began_ms": 0,
        "partitions": ["orders-0"],
        "cause": "it took longer than its time-out",
        "coordinator": 2,
        "controller_epoch": 1,
        "time_ms": 60_000,
    }

    assert history_lines([row], with_isr=False) == [
        "  1970-01-01 00:01:00.000  transaction 'payments' (producer 7, epoch 3)"
        " was aborted by its coordinator, broker 2",
        "      cause: it took longer than its time-out; it was open since 1970-01-01 00:00:00.000",
    ]
