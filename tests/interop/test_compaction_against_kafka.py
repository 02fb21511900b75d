"""Compaction of the same log leaves the same batches and records as Kafka's own cleaner, at the same time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.records.builder import build_batch
from ottla.records.compression import Codec
from ottla.records.control import build_end_marker
from ottla.records.record import Record
from ottla.records.validate import Origin
from support.logs.twins import TwinLogs
from support.running.examples import examples

pytestmark = [pytest.mark.apache, pytest.mark.java, pytest.mark.slow]

RETENTION_MS = 1_000
Producer = tuple[int, int, int]


def compacted_twins(directory: Path, **config: str) -> TwinLogs:
    always = {"cleanup_policy": "compact", "min_cleanable_dirty_ratio": "0"}
    retention = {"delete_retention_ms": str(RETENTION_MS)}
    return TwinLogs(directory, 1_000, **{"segment_bytes": "1200", **always, **retention, **config})


def a_batch(
    keys: str,
    *,
    value: bytes | None = b"v" * 40,
    timestamp: int = 1_000,
    producer: Producer | None = None,
    transactional: bool = False,
    codec: Codec = Codec.NONE,
) -> bytes:
    """A batch with one record for each letter; a capital letter is a tombstone."""
    records = [
        Record(key.lower().encode(), None if key.isupper() else value, (("h", b"1"),), timestamp + number)
        for number, key in enumerate(keys)
    ]
    producer_id, producer_epoch, sequence = producer or (-1, -1, -1)
    return bytes(
        build_batch(
            records,
            codec=codec,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=sequence,
            is_transactional=transactional,
        )
    )


def a_marker(producer_id: int, *, commit: bool, timestamp: int = 1_000) -> bytes:
    return bytes(
        build_end_marker(
            producer_id=producer_id,
            producer_epoch=0,
            is_commit=commit,
            coordinator_epoch=0,
            timestamp_ms=timestamp,
        )
    )


def fill(twins: TwinLogs, *texts: str, codec: Codec = Codec.NONE) -> None:
    for text in texts:
        twins.append(a_batch(text, codec=codec))
    twins.set_high_watermark(twins.ours.log.end_offset)


@pytest.mark.parametrize("codec", list(Codec))
def test_only_the_newest_record_of_each_key_stays(tmp_path: Path, codec: Codec) -> None:
    twins = compacted_twins(tmp_path)
    fill(twins, *["abcdefgh", "abcd", "bd", "xyz", "abc", "hgf"] * 6, codec=codec)

    assert twins.clean()

    twins.restart(clean=True)
    twins.close(same_bytes=codec is Codec.NONE)


def test_a_second_run_goes_on_where_the_first_ended(tmp_path: Path) -> None:
    twins = compacted_twins(tmp_path)
    for round_number in range(4):
        fill(twins, *["abcd", "efgh", "ae", "bf"] * (4 + round_number))
        assert twins.clean()
        twins.now_ms += 100

    twins.close()


def test_tombstones_stay_for_their_time_and_go_with_a_later_run(tmp_path: Path) -> None:
    twins = compacted_twins(tmp_path)
    fill(twins, "abcd", "aBcD", *["efgh"] * 12)
    assert twins.clean()
    for later_ms in (RETENTION_MS - 1, 2, 5 * RETENTION_MS):
        twins.now_ms += later_ms
        fill(twins, *["efgh"] * 12)
        assert twins.clean()

    twins.restart(clean=False)
    twins.close()


def test_the_last_batch_of_a_producer_stays_even_when_it_is_empty(tmp_path: Path) -> None:
    twins = compacted_twins(tmp_path)
    for number in range(6):
        twins.append(a_batch("ab", producer=(number % 3, 0, 2 * (number // 3))))
    fill(twins, *["abcdef"] * 14)

    assert twins.clean()
    twins.now_ms += 2 * RETENTION_MS
    fill(twins, *["abcdef"] * 14)
    assert twins.clean()

    twins.restart(clean=True)
    twins.close()


def test_aborted_data_goes_and_markers_follow_when_their_transaction_is_empty(tmp_path: Path) -> None:
    twins = compacted_twins(tmp_path)
    for number in range(8):
        producer_id = 20 + number % 2
        twins.append(a_batch("abcd", producer=(producer_id, 0, 4 * (number // 2)), transactional=True))
        twins.append(a_marker(producer_id, commit=number % 4 == 0), origin=Origin.COORDINATOR)
        fill(twins, "ef", "gh")
    for _ in range(4):
        fill(twins, *["abcd", "efgh"] * 8)
        assert twins.clean()
        twins.now_ms += RETENTION_MS + 1

    twins.close()


def test_nothing_behind_an_open_transaction_is_touched(tmp_path: Path) -> None:
    twins = compacted_twins(tmp_path)
    fill(twins, *["abcd"] * 8)
    twins.append(a_batch("ab", producer=(5, 0, 0), transactional=True))
    fill(twins, *["abcd"] * 20)
    assert twins.clean()
    twins.append(a_marker(5, commit=True), origin=Origin.COORDINATOR)
    fill(twins, *["abcd"] * 8)

    assert twins.clean()

    twins.close()


def test_young_segments_wait_for_the_compaction_lag(tmp_path: Path) -> None:
    twins = compacted_twins(tmp_path, min_compaction_lag_ms="500")
    for number in range(40):
        twins.append(a_batch("abcd", timestamp=1_000 + 20 * number))
    twins.set_high_watermark(160)

    for now_ms in (1_300, 1_700, 2_000, 9_000):
        twins.now_ms = now_ms
        twins.clean()

    twins.close()


def test_small_segments_are_merged_alike(tmp_path: Path) -> None:
    twins = compacted_twins(tmp_path, segment_bytes="3000")
    for number in range(12):
        fill(twins, "abcdef", "abc", "klm"[number % 3])
        twins.roll()

    assert twins.clean()
    twins.now_ms += 100
    fill(twins, *["abcdef"] * 30)
    assert twins.clean()

    twins.close()


plain = st.tuples(st.just("plain"), st.text("abcdeABC", min_size=1, max_size=5))
owned = st.tuples(st.just("owned"), st.text("abAB", min_size=1, max_size=3), st.integers(0, 2), st.booleans())
steps = st.lists(
    plain
    | plain
    | owned
    | st.tuples(st.just("end"), st.integers(0, 2), st.booleans())
    | st.tuples(st.just("later"), st.sampled_from([10, RETENTION_MS // 2, RETENTION_MS + 1]))
    | st.tuples(st.just("roll"))
    | st.tuples(st.just("clean")),
    min_size=4,
    max_size=30,
)


# Whatever was done before: two runs, so far apart that every horizon has passed.
AT_LAST = [("clean",), ("later", RETENTION_MS + 1), ("roll",), ("plain", "ab"), ("roll",), ("clean",)]


@examples(few=25, many=400)
@given(steps)
def test_random_logs_are_compacted_alike(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[Any, ...]]
) -> None:
    twins = compacted_twins(tmp_path_factory.mktemp("compacted"), segment_bytes="500")
    sequences: dict[int, int] = {}
    is_open: dict[int, bool] = {}
    for kind, *arguments in [*steps, *AT_LAST]:
        twins.now_ms += 1
        match kind, arguments:
            case "plain", (keys,):
                twins.append(a_batch(keys, timestamp=twins.now_ms))
            case "owned", (keys, producer_id, transactional):
                transactional = transactional or is_open.get(producer_id, False)
                sequence = sequences.get(producer_id, 0)
                twins.append(
                    a_batch(
                        keys,
                        timestamp=twins.now_ms,
                        producer=(producer_id, 0, sequence),
                        transactional=transactional,
                    )
                )
                sequences[producer_id] = sequence + len(keys)
                is_open[producer_id] = transactional
            case "end", (producer_id, commit):
                marker = a_marker(producer_id, commit=commit, timestamp=twins.now_ms)
                twins.append(marker, origin=Origin.COORDINATOR)
                is_open[producer_id] = False
            case "later", (later_ms,):
                twins.now_ms += later_ms
            case "roll", ():
                twins.roll()
            case "clean", ():
                twins.set_high_watermark(twins.ours.log.end_offset)
                twins.clean()
    twins.close(same_bytes=False)
