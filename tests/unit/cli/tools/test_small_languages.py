"""The small languages of the tools' flags, lines and files."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.cli.shared.connection import client_config
from ottla.cli.shared.json_files import partition_rows
from ottla.cli.shared.optional_values import with_stand_ins
from ottla.cli.shared.options import exactly_one, key_values, only_with, pattern, read_properties
from ottla.cli.shared.refusal import CommandRefused, UsageRefused
from ottla.cli.tools.configs.work import parse_added
from ottla.cli.tools.console.format import Format, deserializer
from ottla.cli.tools.console.lines import LineReader
from ottla.cli.tools.console.sending import producer_settings
from ottla.cli.tools.groups.reset import parse_datetime, parse_duration_ms, read_plan
from ottla.cli.tools.logs.get_offsets import by_patterns, parse_time
from ottla.cli.tools.reassign.directory_moves import Place, Replica, state_line
from ottla.cli.tools.reassign.directory_moves import read_moves as read_directories
from ottla.cli.tools.reassign.plan import read_plan as read_moves
from ottla.cli.tools.topics.change import matching, parse_assignment
from ottla.model.ids import TopicPartition
from ottla.records.record import Record


@pytest.mark.parametrize(
    ("properties", "line", "parts"),
    [
        ({}, b"a\tb", (None, b"a\tb", ())),
        ({"parse.key": "true"}, b"a\tb\tc", (b"a", b"b\tc", ())),
        ({"parse.key": "true", "key.separator": "::"}, b"a::b", (b"a", b"b", ())),
        (
            {"parse.headers": "true", "parse.key": "true"},
            b"h:1,i:2\tk\tv",
            (b"k", b"v", (("h", b"1"), ("i", b"2"))),
        ),
        ({"parse.key": "true", "null.marker": "NIL"}, b"NIL\tNIL", (None, None, ())),
        ({"parse.key": "true", "ignore.error": "true"}, b"lonely", (None, b"lonely", ())),
    ],
)
def test_lines_are_taken_apart_as_kafkas_reader_does(
    properties: dict[str, str], line: bytes, parts: tuple[object, ...]
) -> None:
    assert LineReader.of(properties).read(line, 1) == parts


def test_a_header_without_its_separator_is_named() -> None:
    reader = LineReader.of({"parse.headers": "true"})

    with pytest.raises(CommandRefused, match="No header key separator found in pair 'h' on line number 3"):
        reader.read(b"h\tv", 3)


def test_a_record_is_printed_in_the_order_of_kafkas_formatter() -> None:
    flags = ("timestamp", "partition", "offset", "headers", "key")
    how = Format.of({f"print.{name}": "true" for name in flags})
    full = Record(b"k", None, (("h", b"1"), ("i", None)), 12, 7)

    assert how.line(TopicPartition("t", 3), full, "CreateTime") == (
        b"CreateTime:12\tPartition:3\tOffset:7\th:1,i:null\tk\tnull\n"
    )
    bare = how.line(TopicPartition("t", 0), Record(None, b"v", offset=0), "CreateTime")
    assert bare == b"NO_TIMESTAMP\tPartition:0\tOffset:0\tNO_HEADERS\tnull\tv\n"


def test_numbers_are_deserialized_by_long_and_short_class_names() -> None:
    assert deserializer("org.apache.kafka.common.serialization.LongDeserializer")(bytes(7) + b"\x05") == b"5"
    assert deserializer("Integer")(b"\xff\xff\xff\xff") == b"-1"
    with pytest.raises(UsageRefused, match="Frob is not known"):
        deserializer("Frob")


@pytest.mark.parametrize(
    ("text", "ms"), [("PT1M", 60_000), ("P1DT2H", 93_600_000), ("PT0.5S", 500), ("-PT1S", -1_000)]
)
def test_durations_are_iso_8601(text: str, ms: int) -> None:
    assert parse_duration_ms(text) == ms


@pytest.mark.parametrize("text", ["P", "PT", "1D", "PT5", ""])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(UsageRefused):
        parse_duration_ms(text)


def test_a_date_without_a_zone_is_utc() -> None:
    assert parse_datetime("1970-01-01T00:00:01.500") == 1_500
    assert parse_datetime("1970-01-01T01:00:00+01:00") == 0


def test_an_exported_plan_is_read_for_one_group_and_for_several() -> None:
    orders = TopicPartition("orders", 0)

    assert read_plan("orders,0,7\n", ["a"], is_one_group=True) == {"a": {orders: 7}}
    several = "a,orders,0,7\nb,orders,0,8\nc,orders,0,9\n"
    assert read_plan(several, ["a", "b", "d"], is_one_group=False) == {"a": {orders: 7}, "b": {orders: 8}}
    assert read_plan(several, ["c"], is_one_group=True) == {"c": {orders: 9}}
    with pytest.raises(CommandRefused, match="line 1 of the plan is not topic,partition,offset"):
        read_plan("orders,zero,7\n", ["a"], is_one_group=True)


def test_a_plan_for_another_group_is_refused() -> None:
    with pytest.raises(CommandRefused, match="no line for group 'bill'; it is for 'billing'"):
        read_plan("billing,orders,0,7\n", ["bill"], is_one_group=True)


def test_a_plan_that_names_no_group_is_not_taken_for_every_group() -> None:
    with pytest.raises(CommandRefused, match="is not group,topic,partition,offset: orders,0,7"):
        read_plan("orders,0,7\n", ["a", "b"], is_one_group=False)


@pytest.mark.parametrize(
    ("patterns", "wanted"),
    [
        ("orders:1", {("orders", 1)}),
        ("orders:1-", {("orders", 1), ("orders", 2)}),
        ("orders:-1,logs", {("orders", 0), ("logs", 0)}),
        (":0", {("orders", 0), ("logs", 0)}),
        ("o.*:0-2", {("orders", 0), ("orders", 1)}),
    ],
)
def test_patterns_of_partitions(patterns: str, wanted: set[tuple[str, int]]) -> None:
    is_wanted = by_patterns(patterns)
    known = [("orders", 0), ("orders", 1), ("orders", 2), ("logs", 0)]

    assert {name for name in known if is_wanted(*name)} == wanted


def test_times_have_names() -> None:
    assert [parse_time(text) for text in ("latest", "earliest", "max-timestamp", "-2", "99")] == [
        -1,
        -2,
        -3,
        -2,
        99,
    ]
    with pytest.raises(UsageRefused):
        parse_time("noon")
    with pytest.raises(UsageRefused, match="neither a timestamp"):
        parse_time("-9")


def test_settings_may_hold_lists() -> None:
    assert parse_added("a=1, b=[x,y],c=") == {"a": "1", "b": "x,y", "c": ""}
    with pytest.raises(UsageRefused):
        parse_added("a")


def test_assignments_name_each_broker_once_and_all_partitions_alike() -> None:
    assert parse_assignment("0:1,1:2") == [[0, 1], [1, 2]]
    for wrong in ("0:0", "0:1,1", "a"):
        with pytest.raises(UsageRefused):
            parse_assignment(wrong)


def test_topics_are_matched_by_their_whole_names() -> None:
    assert matching(["orders", "orders2", "logs"], "orders", if_exists=False) == ["orders"]
    assert matching(["orders", "orders2", "logs"], "ord.*,logs", if_exists=False) == [
        "logs",
        "orders",
        "orders2",
    ]
    assert matching(["orders"], "nowhere", if_exists=True) == []
    with pytest.raises(CommandRefused):
        matching(["orders"], "nowhere", if_exists=False)


def test_a_flag_without_its_value_gets_its_stand_in() -> None:
    stand_ins = {"--state": ""}

    assert with_stand_ins(["--list", "--state"], stand_ins) == ["--list", "--state="]
    assert with_stand_ins(["--state", "--list"], stand_ins) == ["--state=", "--list"]
    assert with_stand_ins(["--state", "empty"], stand_ins) == ["--state", "empty"]


def test_flags_that_contradict_are_refused() -> None:
    assert exactly_one({"--list": True, "--delete": False}) == "--list"
    for given in ({"--list": True, "--delete": True}, {"--list": False}):
        with pytest.raises(UsageRefused):
            exactly_one(dict(given))
    with pytest.raises(UsageRefused, match="--topic cannot be used with --list"):
        only_with("--list", (), {"--topic": "orders"})
    with pytest.raises(UsageRefused):
        pattern("--topic", "(")
    with pytest.raises(UsageRefused):
        key_values("--config", ["novalue"])


def test_settings_of_a_client_that_cannot_be_honoured_are_refused_by_name(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("# comment\nrequest.timeout.ms = 1234\nclient.id=me\n")

    config = client_config("localhost:1", read_properties(file))

    assert (config.request_timeout_ms, config.client_id) == (1234, "me")
    with pytest.raises(CommandRefused, match="SASL_TLS"):
        client_config("localhost:1", {"security.protocol": "SASL_TLS"})
    with pytest.raises(CommandRefused, match=r"transactional\.id is not supported; those that are: acks, "):
        producer_settings({"transactional.id": "t"})
    for setting, text, allowed in (
        ("acks", "2", "all or -1 or 0 or 1"),
        ("linger.ms", "soon", "a number"),
        ("enable.idempotence", "1", "true or false"),
    ):
        with pytest.raises(CommandRefused, match=f"{setting}={text} makes no sense; write {allowed}$"):
            producer_settings({setting: text})
    chosen = producer_settings({"acks": "all", "linger.ms": "5", "compression.type": "zstd"})[0]
    assert (chosen.acks, chosen.linger_ms, chosen.compression_type) == (-1, 5, "zstd")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "is not JSON"),
        ("[]", "not a JSON object"),
        ("{}", 'no list "partitions"'),
        ('{"partitions": [{"topic": "t"}]}', "names no topic and partition"),
        ('{"partitions": [{"topic": "t", "partition": 0}, {"topic": "t", "partition": 0}]}', "twice: t-0"),
    ],
)
def test_a_file_of_partitions_that_is_none_is_explained(text: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "file.json"
    file.write_text(text)

    with pytest.raises(CommandRefused, match=words):
        partition_rows(file)


@pytest.mark.parametrize(
    ("replicas", "words"),
    [
        ("[]", "no list of replicas"),
        ("[1, 1]", "a replica twice"),
    ],
)
def test_a_plan_that_cannot_be_moved_is_refused(tmp_path: Path, replicas: str, words: str) -> None:
    file = tmp_path / "plan.json"
    file.write_text(f'{{"partitions": [{{"topic": "t", "partition": 0, "replicas": {replicas}}}]}}')

    with pytest.raises(CommandRefused, match=words):
        read_moves(file)


def test_directories_of_a_plan_are_one_for_each_replica(tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    row = '{"topic": "t", "partition": 0, "replicas": [1, 2], "log_dirs": %s}'
    plan.write_text('{"partitions": [%s]}' % (row % '["any", "/b"]'))
    assert read_directories(plan) == {Replica(TopicPartition("t", 0), 2): "/b"}

    for wrong, why in (('["/b"]', "2 replicas and 1 log_dirs"), ("[1, 2]", "not a list")):
        plan.write_text('{"partitions": [%s]}' % (row % wrong))
        with pytest.raises(CommandRefused, match=why):
            read_directories(plan)


@pytest.mark.parametrize(
    ("place", "said"),
    [
        (Place("/a", "/b"), "Reassignment of replica t-0-2 is still in progress."),
        (Place("/b"), "Reassignment of replica t-0-2 completed successfully."),
        (Place("/a", "/c"), "Partition t-0 on broker 2 is being moved to log dir /c instead of /b."),
        (Place("/a"), "Partition t-0 on broker 2 is not being moved from log dir /a to /b."),
        (Place(), "Partition t-0 cannot be found in any live log directory on broker 2."),
    ],
)
def test_the_state_of_a_move_between_directories_is_in_apaches_words(place: Place, said: str) -> None:
    assert state_line(Replica(TopicPartition("t", 0), 2), "/b", place) == said
