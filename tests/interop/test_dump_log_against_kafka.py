"""``ottla dump-log`` prints line by line what Kafka's dump tool prints of the same file."""

from __future__ import annotations

import json
import re
import shutil
import struct
from collections.abc import Callable
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from typer.testing import CliRunner

from ottla.cli.main import app
from ottla.records.builder import build_batch
from ottla.records.record import Record
from support.clusters.history import History
from support.processes.apache import java_harness, run_tool
from support.running.examples import examples

pytestmark = [pytest.mark.apache, pytest.mark.java, pytest.mark.slow]

KINDS = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
FLAGS: dict[str, tuple[str, ...]] = {
    "plain": (),
    "deep": ("--deep-iteration",),
    "data": ("--print-data-log",),
    "only data": ("--print-data-log", "--skip-record-metadata"),
    "deep without metadata": ("--deep-iteration", "--skip-record-metadata"),
    "sanity": ("--index-sanity-check",),
    "verify": ("--verify-index-only",),
    "limited": ("--max-bytes", "5000", "--deep-iteration"),
    "message size": ("--max-message-size", "20000"),
}


@dataclass(frozen=True, slots=True)
class Said:
    """What a tool printed."""

    exit_code: int
    lines: list[str]
    errors: list[str]


@pytest.mark.parametrize("flags", FLAGS.values(), ids=FLAGS)
def test_every_file_of_a_stopped_broker_is_printed_as_kafka_prints_it(
    apache_history: History, flags: tuple[str, ...]
) -> None:
    files = _files(apache_history.stopped)
    assert {file.suffix for file in files} == set(KINDS), "the history has every kind of file"

    ours, theirs = _both("--files", ",".join(map(str, files)), *flags)

    _assert_same(ours, theirs)


def test_the_files_of_a_running_broker_are_printed_as_kafka_prints_them(apache_history: History) -> None:
    for file in _files(apache_history.running):
        ours, theirs = _both("--files", str(file), "--deep-iteration")

        if theirs.exit_code:  # an index that is not yet trimmed, of a log that is still empty
            assert ours.exit_code == 1
            assert len(ours.errors) == 1
        else:
            _assert_same(ours, theirs)


@pytest.mark.parametrize(
    ("topic", "flag"),
    [("__consumer_offsets", "--offsets-decoder"), ("__transaction_state", "--transaction-log-decoder")],
)
def test_internal_topics_are_decoded_as_kafka_decodes_them(
    apache_history: History, topic: str, flag: str
) -> None:
    files = [
        file
        for file in _files(apache_history.stopped)
        if file.parent.name.startswith(topic) and file.suffix == ".log"
    ]

    ours, theirs = _both("--files", ",".join(map(str, files)), flag)

    assert sum("key: " in line for line in theirs.lines) > 5, "there is something to decode"
    _assert_same(ours, theirs)


@pytest.mark.parametrize("flag", ["--offsets-decoder", "--transaction-log-decoder"])
def test_records_of_another_topic_are_skipped_in_kafkas_words(apache_history: History, flag: str) -> None:
    file = _files(apache_history.stopped / "plain-0")[0].with_suffix(".log")

    ours, theirs = _both("--files", str(file), flag)

    _assert_same(ours, theirs)


@examples(few=20, many=500)
@given(
    st.lists(
        st.tuples(st.none() | st.binary(max_size=12), st.none() | st.binary(max_size=40)),
        min_size=1,
        max_size=9,
    )
)
@example(
    [
        (b"\xed\xa0\x80-\xf0\x80", b"\xe2\x82"),
        (b"\xf4\x90\x80\x80", b"\xc0\xaf\xed\xbf"),
        (b"\xed\xa0\x41", b"\xed\xa0"),
    ]
)
def test_bytes_that_are_no_text_are_printed_as_kafka_prints_them(
    tmp_path: Path, pairs: list[tuple[bytes | None, bytes | None]]
) -> None:
    file = tmp_path / "00000000000000000000.log"
    file.write_bytes(build_batch([Record(key, value, timestamp=1) for key, value in pairs]))

    ours, theirs = _both("--files", str(file), "--print-data-log")

    _assert_same(ours, theirs)


def _flip(at: int) -> Callable[[bytes], bytes]:
    def flipped(content: bytes) -> bytes:
        return content[:at] + bytes([content[at] ^ 0x10]) + content[at + 1 :]

    return flipped


def _as_lz4(content: bytes) -> bytes:
    return content[:22] + b"\x03" + content[23:]


def _entry(layout: str, number: int, *values: int) -> Callable[[bytes], bytes]:
    entry = struct.Struct(layout)

    def replaced(content: bytes) -> bytes:
        start = number * entry.size
        return content[:start] + entry.pack(*values) + content[start + entry.size :]

    return replaced


DAMAGE: dict[str, tuple[str, Callable[[bytes], bytes], tuple[str, ...]]] = {
    "a cut batch at the end": (".log", lambda content: content[:-7], ()),
    "half a header at the end": (".log", lambda content: content + content[:30], ()),
    "a wrong checksum": (".log", _flip(45), ()),
    "a gap in the offsets": (
        ".log",
        lambda content: content + struct.pack(">q", 9_999) + content[8:2000],
        ("--deep-iteration",),
    ),
    "an index entry that points nowhere near": (".index", _entry(">ii", 0, 3, 0), ()),
    "an index that is only verified": (".index", _entry(">ii", 0, 3, 0), ("--verify-index-only",)),
    "zeros behind an index": (".index", lambda content: content + bytes(80), ()),
    "an index with odd bytes": (".index", lambda content: content + b"\0\0\0", ()),
    "a time that is not the batch's": (".timeindex", _entry(">qi", 0, 77, 59), ()),
    "times out of order": (".timeindex", lambda content: content[:24] + content[:12] + content[24:], ()),
    "an indexed offset beyond the log": (".timeindex", _entry(">qi", 1, 2**42, 5_000), ()),
    "zeros behind a time index": (".timeindex", lambda content: content + bytes(120), ()),
    "half an aborted transaction": (".txnindex", lambda content: content + content[:11], ()),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_reported_as_kafka_reports_it(apache_history: History, tmp_path: Path, damage: str) -> None:
    suffix, harm, flags = DAMAGE[damage]
    file = _copied(apache_history, tmp_path, suffix)
    file.write_bytes(harm(file.read_bytes()))

    ours, theirs = _both("--files", str(file), *flags)

    _assert_same(ours, theirs)


UNREADABLE: dict[str, tuple[str, Callable[[bytes], bytes], tuple[str, ...]]] = {
    "zeros in a log": (".log", lambda content: content + bytes(200), ()),
    "records that do not decompress": (".log", _as_lz4, ("--deep-iteration",)),
    "an index pointing behind the log": (".index", _entry(">ii", 0, 3, 10_000_000), ()),
    "an insane index": (".index", lambda content: content + b"\0\0\0", ("--index-sanity-check",)),
    "an insane time index": (".timeindex", _entry(">qi", 0, 2**50, 3), ("--index-sanity-check",)),
    "an index without its log": (".index", lambda content: content, ()),
}


@pytest.mark.parametrize("damage", UNREADABLE)
def test_what_ends_kafkas_tool_is_one_sentence_and_exit_code_1(
    apache_history: History, tmp_path: Path, damage: str
) -> None:
    suffix, harm, flags = UNREADABLE[damage]
    file = _copied(apache_history, tmp_path, suffix)
    if damage == "an index without its log":
        file.with_suffix(".log").unlink()
    file.write_bytes(harm(file.read_bytes()))

    ours, theirs = _both("--files", str(file), *flags)

    assert theirs.exit_code == 1
    assert ours.exit_code == 1
    assert ours.lines[: len(theirs.lines)] == theirs.lines
    assert len(ours.errors) == 1
    assert ours.errors[0].startswith("ottla: ")
    assert ours.errors[0].endswith(".")


def test_a_corrupt_snapshot_is_one_sentence_where_kafka_has_one(
    apache_history: History, tmp_path: Path
) -> None:
    file = _copied(apache_history, tmp_path, ".snapshot")
    file.write_bytes(_flip(12)(file.read_bytes()))

    ours, theirs = _both("--files", str(file))

    assert len(theirs.errors) == len(ours.errors) == 1
    assert "corrupt" in theirs.errors[0]
    assert "corrupt" in ours.errors[0]
    assert ours.lines == theirs.lines


def test_an_unreadable_file_does_not_hide_the_next_one(apache_history: History, tmp_path: Path) -> None:
    file = _copied(apache_history, tmp_path, ".log")

    ours = _ottla(
        "--files", f"{tmp_path}/00000000000000000000.log,{tmp_path}/missing/00000000000000000001.log,{file}"
    )

    assert ours.exit_code == 1
    assert "Dumping " + str(file) in ours.lines
    assert any(line.startswith("baseOffset: ") for line in ours.lines)


def test_files_of_no_known_kind_are_ignored_as_kafka_ignores_them(tmp_path: Path) -> None:
    file = tmp_path / "meta.properties"
    file.write_text("broker.id=1\n")

    ours, theirs = _both("--files", str(file))

    _assert_same(ours, theirs)
    assert ours.errors == [f"Ignoring unknown file {file}"]


def test_checkpoints_are_printed_field_by_field(apache_history: History) -> None:
    names = (
        "trimmed-0/leader-epoch-checkpoint",
        "log-start-offset-checkpoint",
        "trimmed-0/partition.metadata",
    )
    files = [str(apache_history.stopped / name) for name in names]

    ours = _ottla("--files", ",".join(files))

    assert ours.exit_code == 0
    assert ours.lines[:3] == ["Dumping " + files[0], "epoch: 0 startOffset: 57", "epoch: 1 startOffset: 300"]
    assert "topic: trimmed partition: 0 offset: 57" in ours.lines
    assert "version: 0" in ours.lines


@pytest.mark.parametrize(
    "flags",
    [
        ("--value-decoder-class", "org.example.Decoder"),
        ("--key-decoder-class", "org.example.Decoder"),
        ("--cluster-metadata-decoder",),
        ("--remote-log-metadata-decoder",),
    ],
)
def test_what_only_java_or_kraft_can_decode_is_refused_by_name(
    tmp_path: Path, flags: tuple[str, ...]
) -> None:
    ours = _ottla("--files", f"{tmp_path}/00000000000000000000.log", *flags)

    assert ours.exit_code == 1
    assert ours.lines == []
    assert len(ours.errors) == 1
    assert flags[0] in ours.errors[0]


def test_the_oracle_prints_what_kafkas_tool_prints_as_a_process(apache_history: History) -> None:
    file = str(_files(apache_history.stopped / "plain-0")[0])

    process = run_tool("kafka.tools.DumpLogSegments", "--files", file)
    broken = run_tool("kafka.tools.DumpLogSegments", "--files", file + "/none.log")

    assert Said(process.exit_code, process.stdout.splitlines(), process.stderr.splitlines()) == _kafka(
        "--files", file
    )
    assert broken.exit_code == _kafka("--files", file + "/none.log").exit_code == 1


def _copied(history: History, directory: Path, suffix: str) -> Path:
    """A segment with an index of some length, in a directory of its own; the file of that suffix."""
    source = history.stopped / ("transactional-0" if suffix in (".txnindex", ".snapshot") else "plain-0")
    shutil.copytree(source, directory / source.name)
    candidates = sorted((directory / source.name).glob(f"*{suffix}"), key=lambda file: -file.stat().st_size)
    if suffix in (".log", ".index", ".timeindex"):
        largest = max((directory / source.name).glob("*.timeindex"), key=lambda file: file.stat().st_size)
        return largest.with_suffix(suffix)
    return candidates[0]


def _files(directory: Path) -> list[Path]:
    return sorted(file for file in directory.rglob("*") if file.suffix in KINDS)


def _assert_same(ours: Said, theirs: Said) -> None:
    for number, (our_line, their_line) in enumerate(zip_longest(ours.lines, theirs.lines, fillvalue="")):
        assert _in_order(our_line) == _in_order(their_line), f"line {number}"
    assert _by_file(ours.errors) == _by_file(theirs.errors)
    assert ours.exit_code == theirs.exit_code


def _by_file(errors: list[str]) -> list[list[str]]:
    """Kafka tells of the files in the order of their paths' hashes, Ottla in the order they were given."""
    blocks: list[list[str]] = []
    for line in errors:
        if line.startswith(" ") and blocks:
            blocks[-1].append(line)
        else:
            blocks.append([line])
    return sorted(blocks)


def _in_order(line: str) -> str:
    """Kafka prints a transaction's partitions in the order of their hashes, Ottla as they are stored."""
    return re.sub(r"partitions=\[(.*?)\]", lambda found: str(sorted(found[1].split(","))), line)


def _both(*args: str) -> tuple[Said, Said]:
    return _ottla(*args), _kafka(*args)


def _ottla(*args: str) -> Said:
    done = CliRunner().invoke(app, ["dump-log", *args])
    assert done.exception is None or isinstance(done.exception, SystemExit), repr(done.exception)
    return Said(done.exit_code, done.stdout.splitlines(), done.stderr.splitlines())


def _kafka(*args: str) -> Said:
    said = json.loads(java_harness("DumpOracle").call("dump", "\n".join(args).encode()))
    return Said(said["exit_code"], said["stdout"].splitlines(), said["stderr"].splitlines())
