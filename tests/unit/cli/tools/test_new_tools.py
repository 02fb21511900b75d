"""Replicas compared, rates measured, znodes watched: the parts that need no cluster."""

from __future__ import annotations

import itertools
import os
import re
import signal
from pathlib import Path
from typing import cast

import pytest

from ottla.cli.shared.options import Output
from ottla.cli.shared.refusal import CommandRefused
from ottla.cli.shared.signals import StopAsked, stop_between
from ottla.cli.tools.console.settings import consumer_settings
from ottla.cli.tools.logs.replicas_compared import compare
from ottla.cli.tools.perf.command import repeated
from ottla.cli.tools.perf.measure import (
    Window,
    numbered_payloads,
    payloads_of,
    random_payloads,
    time_format,
)
from ottla.cli.tools.zookeeper.shell import converse
from ottla.cli.tools.zookeeper.watch import told
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.records.builder import build_batch
from ottla.records.record import Record
from ottla.server.zookeeper.blocking import BlockingZooKeeper
from ottla.wire.apis.fetch import PartitionData

ORDERS = TopicPartition("orders", 0)


def fetched(*values: bytes, high_watermark: int = 100, error: int = 0) -> PartitionData:
    """What a replica answers: a batch for each value, from offset 0 on."""
    batches = b"".join(
        build_batch([Record(None, value, (), 7)], base_offset=offset) for offset, value in enumerate(values)
    )
    return PartitionData(records=batches, high_watermark=high_watermark, error_code=error)


def test_equal_replicas_agree_up_to_what_all_have() -> None:
    compared = compare(ORDERS, 0, {1: fetched(b"a", b"b", b"c"), 2: fetched(b"a", b"b")})

    assert (compared.next_offset, compared.differences) == (2, ())


def test_nothing_beyond_the_high_watermark_is_compared() -> None:
    compared = compare(ORDERS, 0, {1: fetched(b"a", b"b", high_watermark=1), 2: fetched(b"a", b"X")})

    assert (compared.next_offset, compared.differences) == (1, ())


def test_a_different_batch_is_told_with_both_checksums() -> None:
    compared = compare(ORDERS, 0, {1: fetched(b"a", b"b"), 2: fetched(b"a", b"X")})

    assert compared.next_offset == 2
    assert re.fullmatch(
        r"partition orders-0 has unmatched checksum at offset 1; replica 1's checksum \d+;"
        r" replica 2's checksum \d+",
        compared.differences[0],
    )


def test_batches_that_end_elsewhere_end_the_comparison() -> None:
    two = PartitionData(
        records=bytes(build_batch([Record(None, b"a", (), 7), Record(None, b"b", (), 7)])), high_watermark=9
    )

    compared = compare(ORDERS, 0, {1: fetched(b"a", b"b"), 2: two})

    assert compared.is_torn
    assert compared.differences == (
        "partition orders-0: replica 1's offset 0 doesn't match replica 2's offset 1",
    )


def test_a_replica_that_answers_with_an_error_holds_the_others_up() -> None:
    away = fetched(b"a", error=int(ErrorCode.NOT_LEADER_OR_FOLLOWER))

    assert compare(ORDERS, 5, {1: fetched(b"a"), 2: away}).next_offset == 5


def test_producer_props_reach_to_the_next_flag() -> None:
    words = ["--topic", "t", "--producer-props", "acks=1", "linger.ms=5", "--num-records", "9"]

    assert repeated(words, "--producer-props") == [
        "--topic", "t", "--producer-props", "acks=1", "--producer-props", "linger.ms=5", "--num-records", "9",
    ]  # fmt: skip


def test_the_last_line_of_a_measurement_is_kafkas() -> None:
    window = Window(0.0, [float(number) for number in range(1000)], byte_count=1024 * 1024)

    assert window.total_line(2000.0) == (
        "1000 records sent, 500.000000 records/sec (0.50 MB/sec), 499.50 ms avg latency,"
        " 999.00 ms max latency, 500 ms 50th, 950 ms 95th, 990 ms 99th, 999 ms 99.9th."
    )
    assert window.line(2000.0) == (
        "1000 records sent, 500.0 records/sec (0.50 MB/sec), 499.5 ms avg latency, 999.0 ms max latency."
    )


def test_payloads_are_letters_numbers_or_parts_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "payloads"
    file.write_text("one|two|")

    assert len(next(random_payloads(50))) == 50
    assert list(itertools.islice(numbered_payloads(), 3)) == [b"0", b"1", b"2"]
    assert set(itertools.islice(payloads_of(file, "|"), 100)) == {b"one", b"two"}
    file.write_text("")
    with pytest.raises(CommandRefused, match="is empty"):
        payloads_of(file, "|")


def test_javas_date_letters_are_understood_or_refused() -> None:
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:123", time_format("yyyy-MM-dd HH:mm:ss:SSS")(123))
    assert time_format("'at' SSS")(45) == "at 045"
    with pytest.raises(ValueError, match="letter z"):
        time_format("HH z")


def test_consumer_settings_go_to_the_part_that_honours_them() -> None:
    config, membership, others = consumer_settings(
        {
            "max.poll.records": "7",
            "enable.auto.commit": "false",
            "partition.assignment.strategy": "org.apache.kafka.clients.consumer.RoundRobinAssignor, range",
            "group.instance.id": "me",
            "client.id": "c",
        }
    )

    assert config.max_poll_records == 7
    assert (membership.enable_auto_commit, membership.group_instance_id) == (False, "me")
    assert membership.partition_assignment_strategy == ("roundrobin", "range")
    assert others == {"client.id": "c"}


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("max.poll.records", "many", "makes no sense; write a number"),
        ("enable.auto.commit", "perhaps", "makes no sense; write true or false"),
        ("partition.assignment.strategy", "by.Dice", "is not known"),
        (
            "interceptor.classes",
            "x",
            r"is not supported; those that are: auto\.commit\.interval\.ms, .*group\.id",
        ),
        ("auto.offset.reset", "middle", "makes no sense; write earliest or latest or none"),
        ("isolation.level", "serializable", "makes no sense; write read_committed or read_uncommitted"),
    ],
)
def test_a_consumer_setting_that_cannot_be_is_refused_by_name(name: str, text: str, why: str) -> None:
    with pytest.raises(CommandRefused, match=why) as refused:
        consumer_settings({name: text})

    assert name in str(refused.value)


def test_a_watched_node_is_told_as_it_is_and_then_by_its_changes() -> None:
    nothing = frozenset[str]()

    assert told("/a", None, (None, nothing)) == ["/a is not there"]
    assert told("/a", (None, nothing), ("x", frozenset({"1"}))) == ["/a created x", "/a + 1"]
    assert told("/a", ("x", frozenset({"1"})), ("y", frozenset({"2"}))) == [
        "/a changed y",
        "/a + 2",
        "/a - 1",
    ]
    assert told("/a", ("y", nothing), ("y", nothing)) == []
    assert told("/a", ("y", nothing), (None, nothing)) == ["/a deleted"]


def test_at_a_terminal_a_mistake_does_not_end_the_zookeeper_shell(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    typed = iter(["nonsense", "get '", "", "ls /", "quit", "ls /never"])
    monkeypatch.setattr("builtins.input", lambda prompt: next(typed))

    class Session:
        def children(self, path: str) -> list[str]:
            return ["brokers", "controller"] if path == "/" else []

    converse(cast("BlockingZooKeeper", Session()), "127.0.0.1:2181", Output.TABLE)

    printed = capsys.readouterr()
    assert printed.out.splitlines()[1:] == ["[brokers, controller]"]
    assert [line.split(" ")[1] for line in printed.err.splitlines()] == ["'nonsense'", '"get']
    assert next(typed) == "ls /never"


def test_a_loop_learns_of_a_signal_between_its_steps() -> None:
    finished = False

    with stop_between() as stop:
        os.kill(os.getpid(), signal.SIGINT)
        finished = True

    assert stop.asked
    assert finished


def test_a_second_signal_cuts_a_step_short() -> None:
    handler = signal.getsignal(signal.SIGTERM)

    with stop_between() as stop:
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(StopAsked):
            os.kill(os.getpid(), signal.SIGTERM)

    assert stop.asked
    assert signal.getsignal(signal.SIGTERM) is handler
