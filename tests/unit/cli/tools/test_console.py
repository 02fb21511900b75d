"""The console tools: which of flag, property and file counts, and how numbers are shown."""

from __future__ import annotations

import struct
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.cli.shared import connection
from ottla.cli.tools.console import reading as console_reading
from ottla.cli.tools.console import sending
from ottla.cli.tools.console.format import java_decimal
from ottla.cli.tools.console.lines import LineReader
from ottla.client.admin.topics import describe_topics
from ottla.client.config import ConsumerConfig, ProducerConfig
from ottla.model.ids import TopicPartition
from ottla.model.timestamps import EARLIEST, LATEST
from support.client.answering_client import AnsweringClient, described
from support.processes.commands import run_here

STOCK_CONSUMER = """\
# comma separated list of brokers used for bootstrapping
bootstrap.servers=localhost:9092
group.id=test-consumer-group
"""
STOCK_PRODUCER = """\
bootstrap.servers=localhost:9092
compression.type=none
key.serializer=org.apache.kafka.common.serialization.StringSerializer
"""


class Consumer:
    """Notes what it is asked to read, and never has anything."""

    def __init__(self, config: ConsumerConfig) -> None:
        self.config = config
        self.assigned: dict[TopicPartition, int] = {}

    def assign(self, positions: dict[TopicPartition, int]) -> None:
        self.assigned = positions

    def position(self, partition: TopicPartition) -> int | None:
        """It has read all but the last, which it has not found yet."""
        return 7 if partition.partition == 0 else None


class Consoles:
    """A client in the place of a connected one: what the tools made of their options."""

    def __init__(self) -> None:
        self.client: Any = AnsweringClient({describe_topics: described({"orders": [0]})})
        self.client.consumer = self._consumer
        self.client.producer = lambda config: config
        self.client.group_consumer = lambda group, topics, config, _: self._joined.append((group, config))
        self.client.connected = self._connected
        self._joined: list[tuple[str, ConsumerConfig]] = []
        self.consumer: Consumer
        self.limits: tuple[int | None, int | None]
        self.producer: ProducerConfig
        self.reader: LineReader
        self.servers: tuple[str, str | None]

    def _consumer(self, config: ConsumerConfig) -> Consumer:
        self.consumer = Consumer(config)
        return self.consumer

    def _connected(self, servers: str, settings: dict[str, str]) -> Any:
        self.servers = (servers, settings.get("bootstrap.servers"))
        return AnsweringClient.connected(self.client)

    def note_run(self, _reading: object, max_messages: int | None, timeout_ms: int | None) -> None:
        self.limits = (max_messages, timeout_ms)

    def note_lines(self, producer: Any, _topic: str, reader: LineReader, *, is_sync: bool) -> None:
        self.producer, self.reader = producer, reader

    @property
    def group(self) -> str:
        return self._joined[0][0]


@pytest.fixture
def consoles(monkeypatch: pytest.MonkeyPatch) -> Consoles:
    made = Consoles()
    monkeypatch.setattr(connection, "connected", made.client.connected)
    monkeypatch.setattr(
        console_reading.Reading, "run", lambda reading, *limits: made.note_run(reading, *limits)
    )
    monkeypatch.setattr(sending, "send_lines", made.note_lines)
    return made


def consume(*words: str) -> None:
    ran = run_here("console-consumer", "--topic", "orders", *words)
    assert ran.exit_code == 0, ran.stderr


@pytest.mark.parametrize(
    ("words", "position"),
    [
        ((), LATEST),
        (("--consumer-property", "auto.offset.reset=earliest"), EARLIEST),
        (("--from-beginning",), EARLIEST),
        (("--from-beginning", "--consumer-property", "auto.offset.reset=earliest"), EARLIEST),
        (("--partition", "0", "--consumer-property", "auto.offset.reset=earliest"), LATEST),
    ],
)
def test_where_a_consumer_without_a_group_begins(
    consoles: Consoles, words: tuple[str, ...], position: int
) -> None:
    consume(*words)

    assert consoles.consumer.assigned == {TopicPartition("orders", 0): position}


def test_partitions_that_came_later_are_read_from_their_beginning(
    consoles: Consoles, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = {describe_topics: described({"orders": [0, 0]})}
    consoles.client._answers = asked

    def run(reading: console_reading.Reading, *_limits: object) -> None:
        reading.look_for_more()
        assert set(consoles.consumer.assigned.values()) == {LATEST}
        asked[describe_topics] = described({"orders": [0, 0, 0], "other": [0]})
        reading.look_for_more()

    monkeypatch.setattr(console_reading.Reading, "run", run)

    consume()

    expected = {0: 7, 1: LATEST, 2: EARLIEST}
    assert consoles.consumer.assigned == {TopicPartition("orders", n): at for n, at in expected.items()}


def test_resets_that_contradict_each_other_are_refused_in_kafkas_words() -> None:
    words = ("--from-beginning", "--consumer-property", "auto.offset.reset=latest")

    ran = run_here("console-consumer", "--topic", "orders", *words)

    assert ran.exit_code == 2
    assert "Can't simultaneously specify --from-beginning and 'auto.offset.reset=latest'" in ran.stderr


def test_no_reset_and_no_group_leave_nowhere_to_begin(consoles: Consoles) -> None:
    ran = run_here("console-consumer", "--topic", "orders", "--consumer-property", "auto.offset.reset=none")

    assert (ran.exit_code, "--group" in ran.stderr) == (1, True)


def test_the_isolation_level_of_the_settings_counts_unless_the_flag_is_given(consoles: Consoles) -> None:
    committed = ("--consumer-property", "isolation.level=read_committed")

    consume(*committed)
    assert consoles.consumer.config.isolation_level == "read_committed"
    consume(*committed, "--isolation-level", "read_uncommitted")
    assert consoles.consumer.config.isolation_level == "read_uncommitted"
    consume()
    assert consoles.consumer.config.isolation_level == "read_uncommitted"


def test_negative_limits_are_none(consoles: Consoles) -> None:
    consume("--max-messages", "-1", "--timeout-ms", "-5")
    assert consoles.limits == (None, None)
    consume("--max-messages", "0", "--timeout-ms", "7")
    assert consoles.limits == (0, 7)


def test_kafkas_own_consumer_file_is_taken(consoles: Consoles, tmp_path: Path) -> None:
    file = tmp_path / "consumer.properties"
    file.write_text(STOCK_CONSUMER)

    consume("--consumer.config", str(file), "--bootstrap-server", "there:1")

    assert consoles.group == "test-consumer-group"
    assert consoles.servers == ("there:1", "localhost:9092")


def test_kafkas_own_producer_file_is_taken_and_flags_count_more(consoles: Consoles, tmp_path: Path) -> None:
    file = tmp_path / "producer.properties"
    file.write_text(STOCK_PRODUCER + "linger.ms : 7  \nacks=1\n")
    reading = tmp_path / "reader.properties"
    reading.write_text("key.separator=\\ =\\u0020\n")
    words = ("--producer.config", str(file), "--compression-codec", "zstd", "--producer-property", "acks=0")

    ran = run_here(
        "console-producer", "--topic", "orders", *words, "--timeout", "5", "--reader-config", str(reading)
    )

    assert ran.exit_code == 0, ran.stderr
    produced = consoles.producer
    assert (produced.compression_type, produced.linger_ms, produced.acks) == ("zstd", 5, 0)
    assert consoles.reader.key_separator == b" = "


def test_a_server_of_the_settings_is_asked_where_none_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def config(servers: str, _properties: dict[str, str]) -> Any:
        asked.append(servers)
        raise connection.CommandRefused("enough")

    monkeypatch.setattr(connection, "client_config", config)
    here = SimpleNamespace(bootstrap_servers="up:1", client_properties=None)
    monkeypatch.setattr(connection, "read_state", lambda _directory: here)
    settings = {"bootstrap.servers": "file:1"}
    for named, given in (("", {}), ("", settings), ("flag:1", settings)):
        with pytest.raises(connection.CommandRefused), connection.connected(named, settings=given):
            pass

    assert asked == ["up:1", "file:1", "flag:1"]


@pytest.mark.parametrize(
    ("value", "single", "double"),
    [
        (0.1, "0.1", "0.1"),
        (100.0, "100.0", "100.0"),
        (1e7, "1.0E7", "1.0E7"),
        (0.00012, "1.2E-4", "1.2E-4"),
        (1 / 3, "0.33333334", "0.3333333333333333"),
        (3.4028234663852886e38, "3.4028235E38", "3.4028234663852886E38"),
        (-0.0, "-0.0", "-0.0"),
        (float("inf"), "Infinity", "Infinity"),
        (float("nan"), "NaN", "NaN"),
    ],
)
def test_decimals_are_shown_as_java_shows_them(value: float, single: str, double: str) -> None:
    (rounded,) = struct.unpack(">f", struct.pack(">f", value))

    assert (java_decimal(rounded, ">f"), java_decimal(value, ">d")) == (single, double)
