"""Ottla's log and Kafka's UnifiedLog live through the same steps and end with the same files."""

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


def a_batch(
    count: int = 1,
    *,
    size: int = 100,
    timestamp: int = 1_000,
    base_offset: int = 0,
    producer: tuple[int, int, int] | None = None,
    transactional: bool = False,
    epoch: int = -1,
    codec: Codec = Codec.NONE,
) -> bytes:
    producer_id, producer_epoch, sequence = producer or (-1, -1, -1)
    records = [
        Record(f"key-{number % 7}".encode(), bytes(size), (), timestamp + number) for number in range(count)
    ]
    return bytes(
        build_batch(
            records,
            base_offset=base_offset,
            codec=codec,
            leader_epoch=epoch,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=sequence,
            is_transactional=transactional,
        )
    )


def a_marker(
    producer_id: int, producer_epoch: int, *, commit: bool, timestamp: int = 1_000, epoch: int = 0
) -> bytes:
    return bytes(
        build_end_marker(
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            is_commit=commit,
            coordinator_epoch=epoch,
            timestamp_ms=timestamp,
        )
    )


def test_a_plain_log_over_several_segments_ends_in_the_same_files(tmp_path: Path) -> None:
    twins = TwinLogs(tmp_path, segment_bytes="10000")

    for number in range(60):
        twins.append(
            a_batch(1 + number % 3, size=200 * (number % 5), timestamp=1_000 + 10 * number), number // 20
        )

    twins.close()


def test_idempotent_producers_end_in_the_same_snapshots(tmp_path: Path) -> None:
    twins = TwinLogs(tmp_path, segment_bytes="8000")

    for number in range(40):
        twins.now_ms += 7
        twins.append(a_batch(2, producer=(number % 3, 0, 2 * (number // 3)), timestamp=twins.now_ms))
        if number % 4 == 0:
            twins.append(a_batch(2, producer=(number % 3, 0, 2 * (number // 3)), timestamp=twins.now_ms))

    twins.close()


def test_transactions_end_in_the_same_transaction_indexes(tmp_path: Path) -> None:
    twins = TwinLogs(tmp_path, segment_bytes="6000")

    for number in range(24):
        producer_id = 10 + number % 3
        twins.append(a_batch(3, producer=(producer_id, 0, 3 * (number // 3)), transactional=True))
        if number % 3 == 2:
            for ended in range(3):
                marker = a_marker(10 + ended, 0, commit=(number + ended) % 2 == 0)
                twins.append(marker, origin=Origin.COORDINATOR)
            twins.set_high_watermark(twins.ours.log.end_offset - 2)
    twins.append(a_batch(1, producer=(11, 0, 24), transactional=True))

    twins.restart(clean=True)
    twins.close()


@pytest.mark.parametrize("clean", [True, False])
def test_a_restart_finds_the_same_log(tmp_path: Path, clean: bool) -> None:
    twins = TwinLogs(tmp_path, segment_bytes="5000")
    for number in range(40):
        twins.append(
            a_batch(2, producer=(number % 2, 0, 2 * (number // 2)), timestamp=1_000 + number), number // 15
        )
    twins.set_high_watermark(70)
    twins.raise_start(23)

    twins.restart(clean=clean)
    twins.append(a_batch(1, timestamp=5_000), 9)

    twins.close()


def test_an_epoch_without_data_is_kept_by_a_clean_restart_and_lost_by_a_crash(tmp_path: Path) -> None:
    for name, clean in (("clean", True), ("crash", False)):
        twins = TwinLogs(tmp_path / name)
        twins.append(a_batch(2), 3)
        twins.assign_epoch(5)

        twins.restart(clean=clean)

        twins.close()


def test_a_follower_takes_batches_of_several_epochs_with_gaps(tmp_path: Path) -> None:
    twins = TwinLogs(tmp_path, segment_bytes="4000")

    chunk = b"".join(
        a_batch(2, base_offset=offset, epoch=offset // 10, timestamp=offset) for offset in range(0, 40, 4)
    )
    twins.replicate(chunk)
    twins.replicate(a_batch(3, base_offset=100, epoch=7) + a_batch(1, base_offset=103, epoch=8)[:50])

    twins.restart(clean=False)
    twins.close()


def test_a_crash_loses_nothing_behind_the_gaps_that_a_compacted_leader_sends(tmp_path: Path) -> None:
    twins = TwinLogs(tmp_path, segment_bytes="700")
    for offset in range(0, 200, 20):
        twins.replicate(a_batch(2, base_offset=offset, epoch=1, timestamp=1_000 + offset))
    assert len(twins.ours.log.segments) > 3, "there are gaps between segments"

    twins.restart(clean=False)

    assert twins.ours.log.end_offset == 182
    twins.close()


def test_truncation_inside_and_between_batches_leaves_the_same_log(tmp_path: Path) -> None:
    twins = TwinLogs(tmp_path, segment_bytes="3000")
    for number in range(30):
        twins.append(a_batch(3, producer=(5, 0, 3 * number), timestamp=1_000 + number), number // 8)

    for offset in (88, 75, 40, 41, 7):
        twins.truncate(offset)
    twins.append(a_batch(1, timestamp=9_000), 6)
    twins.truncate_fully(500)
    twins.append(a_batch(1, timestamp=9_500), 6)

    twins.close()


def test_a_restart_after_a_cut_inside_a_batch_finds_the_producers(tmp_path: Path) -> None:
    twins = TwinLogs(tmp_path)
    twins.append(a_batch(2, producer=(7, 0, 0)))
    twins.append(a_batch(4))
    twins.truncate(4)

    twins.restart(clean=True)

    twins.close()


def test_a_cut_right_after_a_restart_keeps_the_largest_timestamp_which_kafka_forgets(tmp_path: Path) -> None:
    """Kafka reads a time index when first asked, here after the cut has emptied it, and then believes it."""
    twins = TwinLogs(tmp_path)
    twins.append(a_batch(1, timestamp=7_000))
    twins.append(a_marker(1, 0, commit=False, timestamp=8_000), origin=Origin.COORDINATOR)
    twins.restart(clean=True)

    twins.truncate(1, forgetful=True)

    time_index = "00000000000000000000.timeindex"
    twins.close_with(differing={time_index})
    assert (twins.ours.directory / time_index).read_bytes() == (7_000).to_bytes(8, "big") + bytes(4)
    assert (twins.theirs.directory / time_index).read_bytes() == b""


def test_records_deleted_out_of_an_open_transaction_leave_the_last_stable_offset_at_the_start(
    tmp_path: Path,
) -> None:
    twins = TwinLogs(tmp_path)
    twins.append(a_batch(2))
    twins.append(a_batch(1, producer=(7, 0, 0), transactional=True))
    twins.set_high_watermark(3)

    twins.raise_start(3)

    assert twins.ours.log.last_stable_offset == 3
    twins.close()


def test_the_first_batch_after_a_crash_is_indexed_by_what_came_since(tmp_path: Path) -> None:
    twins = TwinLogs(tmp_path, index_interval_bytes="300")
    for _ in range(4):
        twins.append(a_batch(1, size=20))
    twins.restart(clean=False)

    twins.append(a_batch(1))

    assert not len(twins.ours.log.active_segment.index), "no more than 300 bytes since the restart"
    twins.close()


def test_a_crash_leaves_no_snapshot_inside_a_segment(tmp_path: Path) -> None:
    twins = TwinLogs(tmp_path)
    for _ in range(2):
        twins.append(a_batch(1))
    twins.truncate(1)
    twins.append(a_batch(1))

    twins.restart(clean=False)

    twins.close()


def test_a_batch_refused_for_its_sequence_begins_its_epoch_all_the_same(tmp_path: Path) -> None:
    twins = TwinLogs(tmp_path)
    twins.append(a_batch(2, producer=(7, 0, 0)))

    assert twins.append(a_batch(1, producer=(7, 0, 9)), 1) == {"error": 45}

    twins.close()


def test_a_cut_after_a_restart_in_a_log_in_use_leaves_the_same_files(tmp_path: Path) -> None:
    twins = TwinLogs(tmp_path)
    twins.append(a_batch(1, timestamp=0))
    twins.append(a_marker(0, 0, commit=False), origin=Origin.COORDINATOR)
    twins.restart(clean=True)

    twins.truncate(1)

    twins.close()


@pytest.mark.parametrize("codec", list(Codec))
def test_records_are_found_by_time_alike(tmp_path: Path, codec: Codec) -> None:
    twins = TwinLogs(tmp_path, segment_bytes="9000")
    for number in range(30):
        twins.append(a_batch(4, size=300, timestamp=10_000 + 37 * number % 211, codec=codec))
    twins.set_high_watermark(120)
    twins.raise_start(9)

    for timestamp in (0, 9_999, *range(10_000, 10_220, 9), 99_999):
        twins.find_time(timestamp)


def test_log_append_time_is_stamped_alike(tmp_path: Path) -> None:
    twins = TwinLogs(tmp_path, segment_bytes="5000", message_timestamp_type="LogAppendTime")

    for number, codec in enumerate([*Codec] * 3):
        twins.now_ms += 100
        twins.append(a_batch(2, timestamp=50 * number, codec=codec))

    twins.close()


def test_segments_roll_by_time_alike(tmp_path: Path) -> None:
    twins = TwinLogs(tmp_path, segment_ms="1000")

    for timestamp in (1_000, 1_500, 2_000, 2_001, 2_002, 9_000, 3_000, 3_500, 30_000, 30_001):
        twins.now_ms = max(twins.now_ms, timestamp)
        twins.append(a_batch(1, timestamp=timestamp))

    twins.close()


def test_retention_by_size_deletes_the_same_segments(tmp_path: Path) -> None:
    twins = TwinLogs(tmp_path, segment_bytes="2000", retention_bytes="5000")
    for number in range(60):
        twins.append(a_batch(1, producer=(3, 0, number), timestamp=1_000 + number), number // 20)
        if number % 7 == 0:
            twins.set_high_watermark(number)
            twins.delete_old()

    twins.close()


def test_retention_by_time_deletes_the_same_segments_and_at_last_all_of_them(tmp_path: Path) -> None:
    twins = TwinLogs(tmp_path, segment_bytes="1500", retention_ms="500")
    for number in range(40):
        twins.append(a_batch(1, timestamp=1_000 + 20 * number), number // 20)
    twins.set_high_watermark(33)
    for now_ms in (1_400, 1_700, 2_000, 9_000):
        twins.now_ms = now_ms
        twins.delete_old()
    twins.set_high_watermark(40)

    twins.delete_old()

    assert twins.ours.log.log_start_offset == 40
    twins.restart(clean=True)
    twins.append(a_batch(1, timestamp=9_000), 5)
    twins.close()


@pytest.mark.parametrize("policy", ["delete", "compact"])
def test_deleted_records_take_whole_segments_with_them(tmp_path: Path, policy: str) -> None:
    twins = TwinLogs(tmp_path, segment_bytes="1500", cleanup_policy=policy)
    for number in range(40):
        twins.append(a_batch(1, producer=(1, 0, number), timestamp=1_000 + number), number // 10)
    twins.set_high_watermark(38)

    for offset in (5, 17, 30, 38):
        twins.raise_start(offset)
        twins.delete_old()
        twins.restart(clean=offset != 17)

    twins.close()


batches = st.tuples(
    st.just("append"),
    st.integers(1, 4),
    st.sampled_from([0, 50, 400]),
    st.integers(0, 4_000),
    st.none() | st.tuples(st.integers(0, 2), st.integers(0, 1), st.integers(0, 6)),
    st.booleans(),
    st.sampled_from(list(Codec)),
)
steps = st.lists(
    batches
    | batches
    | batches
    | st.tuples(st.just("mark"), st.integers(0, 2), st.integers(0, 1), st.booleans(), st.integers(0, 2))
    | st.tuples(st.just("epoch"))
    | st.tuples(st.just("roll"))
    | st.tuples(st.just("watermark"), st.floats(0, 1))
    | st.tuples(st.just("start"), st.floats(0, 1))
    | st.tuples(st.just("delete"), st.integers(0, 3_000))
    | st.tuples(st.just("truncate"), st.floats(0, 1))
    | st.tuples(st.just("time"), st.integers(0, 5_000))
    | st.tuples(st.just("restart"), st.booleans()),
    min_size=1,
    max_size=25,
)


@examples(few=25, many=400)
@given(steps)
def test_random_lives_are_lived_alike(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[Any, ...]]
) -> None:
    settings = {"segment_bytes": "2500", "index_interval_bytes": "300", "retention_ms": "4000"}
    twins = TwinLogs(tmp_path_factory.mktemp("twins"), 1_000, **settings)
    epoch = 0
    for kind, *arguments in steps:
        twins.now_ms += 10
        end, watermark = twins.ours.log.end_offset, twins.ours.log.high_watermark
        match kind, arguments:
            case "append", (count, size, timestamp, producer, transactional, codec):
                data = a_batch(
                    count,
                    size=size,
                    timestamp=timestamp,
                    producer=producer,
                    transactional=transactional and producer is not None,
                    codec=codec,
                )
                twins.append(data, epoch)
            case "mark", (producer_id, producer_epoch, commit, coordinator_epoch):
                marker = a_marker(producer_id, producer_epoch, commit=commit, epoch=coordinator_epoch)
                twins.append(marker, epoch, origin=Origin.COORDINATOR)
            case "epoch", ():
                epoch += 1
                twins.assign_epoch(epoch)
            case "roll", ():
                twins.roll()
            case "watermark", (share,):
                twins.set_high_watermark(int(watermark + share * (end - watermark)))
            case "start", (share,):
                twins.raise_start(int(share * watermark))
            case "delete", (later_ms,):
                twins.now_ms += later_ms
                twins.delete_old()
            case "truncate", (share,):
                # At a batch's end: what a cut inside one leaves is another test's matter.
                ends = [header.end_offset for _, header in twins.ours.log.batches_from(watermark)]
                twins.truncate(([watermark, *ends])[int(share * len(ends))])
            case "time", (timestamp,):
                twins.find_time(timestamp)
            case "restart", (clean,):
                twins.restart(clean=clean)
                if not clean:  # whoever leads again does so in a new epoch, and notes it first
                    epoch += 1
                    twins.assign_epoch(epoch)
    twins.close()
