"""What a broker does with its logs from time to time."""

import pytest

from ottla.model.ids import TopicPartition
from ottla.records.builder import build_batch
from ottla.records.record import Record
from ottla.storage.cleanup.compaction import Compaction
from ottla.storage.directories.log_checkpoints import LogCheckpoints
from ottla.storage.disk.checkpoints import HIGH_WATERMARKS, read_offsets
from support.bench.led_broker import ME, SECOND, TOPIC, LedBroker, a_batch
from support.bench.node_bench import a_config

ORDERS_0 = TopicPartition(TOPIC, 0)


def test_high_watermarks_are_noted_every_few_seconds() -> None:
    broker = LedBroker().lead(isr=(ME,))
    broker.produce_now(a_batch("a", "b"))

    broker.advance(5_100)

    assert read_offsets(broker.disk, "/data", HIGH_WATERMARKS) == {ORDERS_0: 2}


def test_a_high_watermark_is_not_lost_while_nobody_leads() -> None:
    """KAFKA-1647, 2143: a log that the controller has not yet spoken of keeps its number."""
    broker = LedBroker().lead(isr=(ME,))
    broker.produce_now(a_batch("a", "b"))
    broker.advance(5_100)

    broker.follow(SECOND)
    broker.advance(60_000)

    assert read_offsets(broker.disk, "/data", HIGH_WATERMARKS) == {ORDERS_0: 2}


def test_old_segments_go_and_readers_hear_of_the_new_start() -> None:
    settings = {
        "log_segment_bytes": 120,
        "log_retention_bytes": 100,
        "log_retention_check_interval_ms": 1_000,
    }
    broker = LedBroker(a_config(**settings)).lead(isr=(ME,))
    for value in "abcdef":
        broker.produce_now(a_batch(value * 30), acks=-1)
    assert broker.log.log_start_offset == 0

    broker.advance(1_100)

    assert broker.log.log_start_offset > 0
    assert broker.fetch_now(broker.log.log_start_offset).log_start_offset == broker.log.log_start_offset


def test_records_that_are_not_committed_are_never_too_old() -> None:
    """R15: retention stops at the high watermark."""
    settings = {
        "log_segment_bytes": 120,
        "log_retention_bytes": 100,
        "log_retention_check_interval_ms": 1_000,
    }
    broker = LedBroker(a_config(**settings)).lead(isr=(ME, SECOND))
    for value in "abcdef":
        broker.produce_now(a_batch(value * 30))

    broker.advance(2_000)

    assert broker.log.log_start_offset == 0


def keyed(key: str, value: str) -> bytearray:
    return build_batch([Record(key.encode(), value.encode(), timestamp=1_700_000_000_000)])


def test_compacted_topics_are_cleaned() -> None:
    settings = {
        "log_cleanup_policy": "compact",
        "log_segment_bytes": 200,
        "log_cleaner_backoff_ms": 1_000,
        "log_cleaner_min_cleanable_ratio": 0.01,
    }
    broker = LedBroker(a_config(**settings)).lead(isr=(ME,))
    for number in range(40):
        broker.produce_now(keyed("key", f"value-{number}"))
    before = broker.log.size_bytes

    broker.advance(5_000)

    assert broker.log.size_bytes < before / 2
    assert broker.log.end_offset == 40


def test_retention_that_comes_during_a_compaction_is_made_up_for(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {
        "log_cleanup_policy": "compact,delete",
        "log_segment_bytes": 200,
        "log_retention_bytes": 100,
        "log_retention_check_interval_ms": 1_000_000,
        "log_cleaner_backoff_ms": 1_000,
        "log_cleaner_min_cleanable_ratio": 0.01,
    }
    broker = LedBroker(a_config(**settings)).lead(isr=(ME,))
    for number in range(40):
        broker.produce_now(keyed(f"key {number}", "value"))
    clean = Compaction.__call__
    starts: list[int] = []

    def clean_while_retention_comes(self: Compaction) -> object:
        broker.node.housekeeping._apply_retention()
        starts.append(broker.log.log_start_offset)
        return clean(self)

    monkeypatch.setattr(Compaction, "__call__", clean_while_retention_comes)
    broker.advance(1_100)

    assert starts == [0]
    assert broker.log.log_start_offset > 0
    assert broker.node.log_dirs.offline == {}


def test_end_does_not_wait_for_a_compaction(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {
        "log_cleanup_policy": "compact",
        "log_segment_bytes": 200,
        "log_cleaner_backoff_ms": 1_000,
        "log_cleaner_min_cleanable_ratio": 0.01,
    }
    broker = LedBroker(a_config(**settings)).lead(isr=(ME,))
    for number in range(40):
        broker.produce_now(keyed("key", f"value-{number}"))
    clean = Compaction.__call__
    outcomes: list[object] = []

    def clean_while_the_end_comes(self: Compaction) -> object:
        broker.node.housekeeping.stop()
        outcomes.append(clean(self))
        return outcomes[-1]

    monkeypatch.setattr(Compaction, "__call__", clean_while_the_end_comes)
    broker.advance(1_100)
    broker.node.log_dirs.close()

    assert outcomes == [None]
    assert not [entry for entry in broker.disk.list_directory(broker.log.path) if ".cleaned" in entry.name]


def test_finished_segments_are_synced_so_that_a_restart_need_not_scan_them() -> None:
    broker = LedBroker(a_config(log_segment_bytes=200)).lead(isr=(ME,))
    for value in "abcdef":
        broker.produce_now(a_batch(value * 30))

    broker.advance(3_000)

    assert broker.log.recovery_point >= broker.log.active_segment.base_offset


def test_silent_producers_are_forgotten() -> None:
    broker = LedBroker(a_config(producer_id_expiration_ms=1_000)).lead(isr=(ME,))
    broker.produce_now(a_batch("a", producer_id=4, producer_epoch=0, base_sequence=0))
    assert broker.log.producers.state.producers

    broker.advance(601_000)

    assert broker.log.producers.state.producers == {}


def test_deleted_directories_vanish_after_their_delay() -> None:
    broker = LedBroker(a_config(log_segment_delete_delay_ms=1_000)).lead(isr=(ME,))
    broker.node.partitions.stop_replica(ORDERS_0, -2, delete=True)
    assert any(entry.name.endswith("-delete") for entry in broker.disk.list_directory("/data"))

    broker.advance(40_000)

    assert not any(entry.name.endswith("-delete") for entry in broker.disk.list_directory("/data"))


def test_the_end_waits_for_threads_that_still_work_on_the_logs() -> None:
    broker = LedBroker().lead(isr=(ME,))
    done: list[str] = []
    broker.node.housekeeping._at_work = 1

    broker.node.housekeeping.when_quiet(lambda: done.append("quiet"))
    assert done == []
    broker.node.housekeeping._at_work = 0
    broker.node.housekeeping.when_quiet(lambda: done.append("at once"))

    assert done == ["at once"]


def test_a_mistake_in_one_round_is_no_reason_to_never_go_round_again(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = LedBroker().lead(isr=(ME,))
    broker.produce_now(a_batch("a", "b"))
    work = LogCheckpoints.high_watermark_work
    monkeypatch.setattr(LogCheckpoints, "high_watermark_work", lambda self: {}["a mistake"])
    with pytest.raises(KeyError):
        broker.advance(5_100)
    monkeypatch.setattr(LogCheckpoints, "high_watermark_work", work)

    broker.advance(5_100)

    assert read_offsets(broker.disk, "/data", HIGH_WATERMARKS) == {ORDERS_0: 2}


def test_a_cleaning_that_dies_of_a_mistake_leaves_that_log_alone_and_cleans_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = {
        "log_cleanup_policy": "compact",
        "log_segment_bytes": 200,
        "log_cleaner_backoff_ms": 1_000,
        "log_cleaner_min_cleanable_ratio": 0.01,
    }
    broker = LedBroker(a_config(**settings)).lead(isr=(ME,))
    broker.tell_metadata(p1=ME)
    assert broker.assigned_code(ME, partition=1, isr=(ME,), epoch=1) == 0
    for number in range(40):
        for partition in (0, 1):
            broker.produce_now(keyed("key", f"value-{number}"), partition=partition)
    logs = [broker.node.partitions.find(TOPIC, index).log for index in (0, 1)]
    before = [each.size_bytes for each in logs]
    clean = Compaction.__call__

    def die_once(self: Compaction) -> object:
        monkeypatch.setattr(Compaction, "__call__", clean)
        raise RuntimeError("a mistake")

    monkeypatch.setattr(Compaction, "__call__", die_once)
    with pytest.raises(RuntimeError):
        broker.advance(1_100)
    broker.advance(5_000)

    assert sorted(each.size_bytes < size / 2 for each, size in zip(logs, before, strict=True)) == [
        False,
        True,
    ]


def test_a_wall_clock_that_is_put_back_keeps_no_deleted_log_on_the_disk(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broker = LedBroker().lead(isr=(ME,))
    broker.node.partitions.stop_replica(ORDERS_0, -2, delete=True)
    broker.advance(31_000)
    assert [each.name for each in broker.disk.list_directory("/data") if each.is_directory]

    monkeypatch.setattr(broker.clock, "wall_ms", lambda: 1_000)
    broker.advance(120_000)

    assert not [each.name for each in broker.disk.list_directory("/data") if each.is_directory]
