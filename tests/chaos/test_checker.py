"""The judge of chaos finds what is wrong: each test breaks one promise in a history that was clean."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import crc32c
import pytest

from chaos import replicas
from chaos.availability import measure
from chaos.checker import Checker, Verdict
from chaos.history import Entry, HistoryFile, Runs, make_value, read_history, read_value
from chaos.soak import trends

LOG = [[0, 0, 0, 3], [1, 0, 3, 2], [0, 3, 5, 2]]
"""Three records of producer 0, two of producer 1, two more of producer 0, at offsets 0 to 6."""


def entry(who: str, did: str, t: float = 0.0, **facts: Any) -> Entry:
    return {"t": t, "who": who, "did": did, **facts}


def clean_history() -> list[Entry]:
    """Two producers, a reader, a group whose partition changes hands, and the log at the end."""
    return [
        entry("producer-0", "sent", number=0, ends=[5]),
        entry("producer-1", "sent", number=1, ends=[2]),
        entry("producer-0", "acked", partition=0, runs=[[0, 0, 0, 3], [0, 3, 5, 2]]),
        entry("producer-1", "acked", partition=0, runs=[[1, 0, 3, 2]]),
        entry("reader", "read", partition=0, runs=LOG),
        entry("member-0", "assigned", 1.0, partitions=[0], asked=0.9, offsets={"0": -1001}),
        entry("member-0", "read", 1.5, partition=0, runs=[[0, 0, 0, 3], [1, 0, 3, 1]]),
        entry("member-0", "committed", 2.0, began=1.9, offsets={"0": 4}),
        entry("member-0", "revoked", 3.0, partitions=[0]),
        entry("member-1", "assigned", 4.0, partitions=[0], asked=3.5, offsets={"0": 4}),
        entry("member-1", "read", 5.0, partition=0, runs=[[1, 1, 4, 1], [0, 3, 5, 2]]),
        entry("churn", "created", topic="kept"),
        entry("churn", "created", topic="gone"),
        entry("churn", "deleting", topic="gone"),
        entry("churn", "deleted", topic="gone"),
        entry("nemesis", "topics", broker="broker 1", topics=["kept", "chaos"]),
        entry("final", "read", partition=0, runs=LOG),
    ]


def judged(history: list[Entry]) -> Verdict:
    return Checker(history).check()


def with_final_log(*runs: list[int]) -> list[Entry]:
    return [
        {**each, "runs": [*runs]} if each["who"] == "final" else each
        for each in clean_history()
        if each["did"] != "read" or each["who"] == "final"
    ]


def replaced(who: str, did: str, **facts: Any) -> list[Entry]:
    """The clean history with one entry changed."""
    return [
        {**each, **facts} if (each["who"], each["did"]) == (who, did) else each for each in clean_history()
    ]


def test_a_clean_history_breaks_no_promise() -> None:
    verdict = judged(clean_history())

    assert verdict.violations == []
    assert (verdict.acknowledged, verdict.final) == (7, 7)


def test_an_acknowledged_record_that_is_not_there_is_lost() -> None:
    verdict = judged(with_final_log([0, 0, 0, 3], [1, 0, 3, 2], [0, 3, 5, 1]))

    assert verdict.counts["lost"] == 1


def test_a_record_acknowledged_without_an_offset_must_be_there_all_the_same() -> None:
    def told(seq: int) -> Verdict:
        history = [entry("producer-0", "sent", number=0, ends=[9]), *clean_history()[1:]]
        return judged([*history, entry("producer-0", "acked unplaced", partition=0, runs=[[0, seq, -1, 1]])])

    assert told(4).violations == []
    assert told(5).counts["lost"] == 1


def test_a_tail_that_was_cut_off_is_lost_record_by_record() -> None:
    verdict = judged(with_final_log([0, 0, 0, 3]))

    assert verdict.counts["lost"] == 4


def test_a_record_that_stands_twice_is_duplicated() -> None:
    verdict = judged(with_final_log(*LOG, [0, 4, 7, 1]))

    assert verdict.counts["duplicated"] == 1
    assert verdict.counts["reordered"] == 0


def test_records_of_one_producer_in_another_order_are_reordered() -> None:
    history = with_final_log([0, 3, 0, 2], [0, 0, 2, 3])
    history = [each for each in history if each["did"] != "acked"]

    assert judged(history).counts["reordered"] == 1


def test_an_offset_that_shows_another_record_later_is_changed() -> None:
    other = [[0, 0, 0, 3], [0, 3, 3, 2], [1, 0, 5, 2]]

    assert judged(replaced("reader", "read", runs=other)).counts["changed"] > 0


def test_a_record_nobody_sent_is_a_phantom() -> None:
    assert judged(replaced("final", "read", runs=[*LOG, [1, 7, 7, 1]])).counts["phantom"] == 1
    assert judged(replaced("final", "read", runs=[*LOG, [0xFFFF, 0, 7, 1]])).counts["phantom"] == 1


def test_a_reader_that_is_given_an_older_record_again_polled_backwards() -> None:
    again = [*LOG, [0, 4, 6, 1]]

    assert judged(replaced("reader", "read", runs=again)).counts["nonmonotonic poll"] == 1


def test_a_reader_that_misses_a_record_was_skipped() -> None:
    verdict = judged(replaced("reader", "read", runs=[LOG[0], LOG[2]]))

    assert verdict.counts["skipped by a poll"] == 1
    assert verdict.counts["unseen"] == 2


def test_a_record_that_was_read_and_is_not_in_the_log_has_vanished() -> None:
    history = [each for each in with_final_log([0, 0, 0, 3]) if each["did"] != "acked"]
    history.append(entry("reader", "read", partition=0, runs=LOG))

    assert judged(history).counts["vanished"] == 4


def test_a_commit_that_was_accepted_and_is_not_told_is_lost() -> None:
    verdict = judged(replaced("member-1", "assigned", t=4.0, offsets={"0": 3}))

    assert verdict.counts["committed offset lost"] == 1


def test_a_member_that_begins_beyond_the_commit_skips_records() -> None:
    runs = [[0, 3, 5, 2]]

    assert judged(replaced("member-1", "read", t=5.0, runs=runs)).counts["skipped by a poll"] == 1


def test_topics_that_vanish_or_come_back_are_found() -> None:
    assert judged(replaced("nemesis", "topics", topics=["chaos"])).counts["topic lost"] == 1
    assert judged(replaced("nemesis", "topics", topics=["kept", "gone"])).counts["topic came back"] == 1


def test_a_producer_that_is_never_answered_is_told() -> None:
    history = [*clean_history(), entry("producer-0", "finished", unanswered=3)]

    assert judged(history).counts["unanswered"] == 3


def test_two_leaders_of_one_epoch_are_told() -> None:
    history = [*clean_history(), entry("probe", "two leaders", partition=0, epoch=4, leaders=[1, 2])]

    assert judged(history).counts["two leaders in one epoch"] == 1


def test_what_retention_removed_counts_as_kept_only_if_it_was_read() -> None:
    rest = [run for run in LOG if run[2] >= 3]
    kept = replaced("final", "read", runs=rest)
    unread = [each for each in kept if each["did"] != "read" or each["who"] == "final"]

    assert judged(kept).violations == []
    assert judged(unread).counts["unseen"] == 7


def test_a_partition_that_is_led_too_late_after_a_fault_healed_is_named() -> None:
    history = [
        entry("probe", "led", 0.0, partition=0),
        entry("probe", "not led", 10.0, partition=0),
        entry("nemesis", "healed", 12.0, text="kill -9 of broker 1"),
        entry("probe", "led", 15.5, partition=0),
        entry("nemesis", "healed", 20.0, text="nothing"),
        entry("producer-0", "acked", 9.0, partition=0, runs=[]),
        entry("producer-0", "acked", 16.0, partition=0, runs=[]),
    ]

    late, in_time = measure(history, 1, bound_s=3.0), measure(history, 1, bound_s=4.0)

    assert late.led_again == [3.5, 0.0]
    assert late.longest_without_ack == {0: 7.0}
    assert late.late == ["partition 0 was led 3.5 s after: kill -9 of broker 1"]
    assert in_time.late == []


def test_a_partition_that_is_never_led_again_is_late() -> None:
    history = [entry("nemesis", "healed", 12.0, text="a cut"), entry("probe", "not led", 1.0, partition=0)]

    assert measure(history, 1, bound_s=100).late


def batch(base: int, count: int, epoch: int, payload: bytes = b"records") -> bytes:
    """A batch whose sum is right."""
    tail = struct.pack(">hiqqqhii", 0, count - 1, 0, 0, 7, 0, base, count) + payload
    return struct.pack(">qiibI", base, len(tail) + 9, epoch, 2, crc32c.crc32c(tail)) + tail


def lay_down(directory: Path, *parts: bytes) -> Path:
    (directory / "chaos-0").mkdir(parents=True)
    (directory / "chaos-0" / f"{0:020}.log").write_bytes(b"".join(parts))
    return directory


@pytest.mark.parametrize(
    ("parts", "complaint"),
    [
        ([batch(0, 3, 1), batch(3, 2, 2)], ""),
        ([batch(0, 3, 1), batch(3, 2, 2, b"others!")], "differ at offset 3"),
        ([batch(0, 3, 1), batch(3, 2, 1)], "differ at offset 3"),
        ([batch(0, 3, 1)], "differ in length: 5 and 3"),
        ([batch(0, 3, 1), batch(4, 1, 2)], "offset 4 follows 2"),
        ([batch(0, 3, 2), batch(3, 2, 1)], "epoch 1 follows 2"),
        ([batch(0, 3, 1), batch(3, 2, 2)[:-1]], "ends inside a batch"),
        ([batch(0, 3, 1), batch(3, 2, 2)[:-1] + b"?"], "the sum of the batch at offset 3 is wrong"),
    ],
)
def test_replicas_that_differ_or_are_damaged_are_found(
    tmp_path: Path, parts: list[bytes], complaint: str
) -> None:
    first = lay_down(tmp_path / "one", batch(0, 3, 1), batch(3, 2, 2))
    second = lay_down(tmp_path / "two", *parts)

    problems = replicas.compare("chaos", 0, {1: first, 2: second})

    assert [complaint in problem for problem in problems] == ([True] if complaint else [])


def test_a_broker_that_grows_is_not_flat() -> None:
    def samples(broker: int, growth: int) -> list[Entry]:
        facts = [(float(t), 50_000 + growth * t, 20 + growth * t // 100) for t in range(0, 1200, 5)]
        return [
            entry("samples", "sampled", t, broker=broker, life=1, memory=memory, threads=3, files=files)
            for t, memory, files in facts
        ]

    still, growing = trends([*samples(1, 0), *samples(2, 10)], minutes_min=5)

    assert still.is_flat
    assert not growing.is_flat
    assert growing.memory_mib_per_hour == pytest.approx(10 * 3600 / 1024)


def test_a_history_keeps_every_record_in_runs(tmp_path: Path) -> None:
    runs = Runs()
    for producer, seq, offset in ((0, 0, 0), (0, 1, 1), (1, 0, 2), (0, 2, 3), (0, 3, 5)):
        runs.add(producer, seq, offset)
    file = HistoryFile(tmp_path, "reader")
    file.write("read", partition=0, runs=runs.rows)
    file.close()

    (kept,) = read_history(tmp_path)

    assert kept["runs"] == [[0, 0, 0, 2], [1, 0, 2, 1], [0, 2, 3, 1], [0, 3, 5, 1]]
    assert read_value(make_value(3, 7, 99, b"padding")) == (3, 7, 99)
    assert read_value(b"") == (0xFFFF, 0xFFFF, 0)
