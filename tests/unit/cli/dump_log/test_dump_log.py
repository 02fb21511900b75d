"""``ottla dump-log`` on files made here; the comparison with Kafka's own tool is among the interop tests."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ottla.cli.main import app
from ottla.records.builder import build_batch
from ottla.records.compression import Codec
from ottla.records.control import build_end_marker
from ottla.records.record import Record
from ottla.wire.stored import (
    OffsetCommitKey,
    OffsetCommitValue,
    TransactionLogKey,
    TransactionLogValue,
    encode_stored,
)


def run(*args: str) -> tuple[int, list[str], list[str]]:
    done = CliRunner().invoke(app, ["dump-log", *args])
    assert done.exception is None or isinstance(done.exception, SystemExit), repr(done.exception)
    return done.exit_code, done.stdout.splitlines(), done.stderr.splitlines()


def a_segment(directory: Path, *batches: bytes | bytearray, base_offset: int = 0) -> Path:
    path = directory / f"{base_offset:020}.log"
    path.write_bytes(b"".join(batches))
    return path


def a_batch(base_offset: int = 0, *records: Record, codec: Codec = Codec.NONE) -> bytearray:
    content = records or (Record(b"k", b"v", (("h", b"1"),), 1_000),)
    return build_batch(content, base_offset=base_offset, codec=codec, leader_epoch=3)


def test_a_segment_is_printed_batch_by_batch_and_on_wish_record_by_record(tmp_path: Path) -> None:
    marker = build_end_marker(
        producer_id=7,
        producer_epoch=1,
        is_commit=True,
        coordinator_epoch=4,
        timestamp_ms=1_001,
        base_offset=1,
    )
    path = a_segment(tmp_path, a_batch(), marker)

    code, lines, errors = run("--files", str(path), "--print-data-log")

    assert (code, errors) == (0, [])
    assert lines[:2] == [f"Dumping {path}", "Log starting offset: 0"]
    assert lines[2].startswith(
        "baseOffset: 0 lastOffset: 0 count: 1 baseSequence: -1 lastSequence: -1 producerId: -1"
    )
    assert lines[3] == (
        "| offset: 0 CreateTime: 1000 keySize: 1 valueSize: 1 sequence: -1 headerKeys: [h] key: k payload: v"
    )
    assert lines[5].endswith("endTxnMarker: COMMIT coordinatorEpoch: 4")


def test_what_is_cut_short_at_the_end_is_counted(tmp_path: Path) -> None:
    path = a_segment(tmp_path, a_batch(), a_batch(1)[:40])

    code, lines, _ = run("--files", str(path))

    assert code == 0
    assert lines[-1] == f"Found 40 invalid bytes at the end of {path.name}"


def test_gaps_between_records_are_told_at_the_end(tmp_path: Path) -> None:
    path = a_segment(tmp_path, a_batch(0), a_batch(5), a_batch(9))

    code, _, errors = run("--files", str(path), "--deep-iteration")

    assert code == 0
    assert errors == [
        f"Non-consecutive offsets in {path}",
        "  5 is followed by 9",
        "  0 is followed by 5",
    ]


def test_a_wrong_index_entry_is_told_at_the_end(tmp_path: Path) -> None:
    log = a_segment(tmp_path, a_batch(0), a_batch(1))
    index = log.with_suffix(".index")
    index.write_bytes(struct.pack(">iiii", 0, 0, 9, len(a_batch(0))))

    code, lines, errors = run("--files", str(index))

    assert code == 0
    assert lines[1:] == ["offset: 0 position: 0", f"offset: 9 position: {len(a_batch(0))}"]
    assert errors == [f"Mismatches in :{index}", "  Index offset: 9, log offset: 1"]


def test_offsets_and_transactions_are_decoded(tmp_path: Path) -> None:
    committed = Record(
        encode_stored(OffsetCommitKey("g", "t", 2), 1),
        encode_stored(OffsetCommitValue(5, -1, "note", 99), 3),
        timestamp=1,
    )
    gone = Record(encode_stored(OffsetCommitKey("g", "t", 2), 1), None, timestamp=1)
    transaction = Record(
        encode_stored(TransactionLogKey("id"), 0),
        encode_stored(TransactionLogValue(8, 1, 60, 0, None, 5, -1), 0),
        timestamp=1,
    )
    path = a_segment(tmp_path, a_batch(0, committed, gone, transaction))

    _, offsets, _ = run("--files", str(path), "--offsets-decoder", "--skip-record-metadata")
    _, transactions, _ = run("--files", str(path), "--transaction-log-decoder", "--skip-record-metadata")

    key = '{"type":"1","data":{"group":"g","topic":"t","partition":2}}'
    value = '{"version":"3","data":{"offset":5,"leaderEpoch":-1,"metadata":"note","commitTimestamp":99}}'
    assert offsets[3:5] == [f"| key: {key} payload: {value}", f"| key: {key} payload: <DELETE>"]
    assert transactions[-1] == (
        "| key: transaction_metadata::transactionalId=id payload: producerId:8,producerEpoch:1,state=Empty,"
        "partitions=[],txnLastUpdateTimestamp=5,txnTimeoutMs=60"
    )


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("00000000000000000000.log", bytes(100)),
        ("00000000000000000000.snapshot", b"\0\1\0\0\0\0\0\0\0\1"),
        ("00000000000000000000.snapshot", b"\0"),
        ("leader-epoch-checkpoint", b"0\n5\n0 0\n"),
        ("replication-offset-checkpoint", b"nonsense\n"),
        ("x.log", b""),
    ],
)
def test_a_bad_file_is_one_sentence_and_exit_code_1(tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(content)

    code, _, errors = run("--files", str(path))

    assert code == 1
    assert len(errors) == 1
    assert errors[0].startswith("ottla: ")
    assert errors[0].endswith(".")


def test_a_missing_file_does_not_hide_the_next(tmp_path: Path) -> None:
    path = a_segment(tmp_path, a_batch())

    code, lines, errors = run("--files", f"{tmp_path}/00000000000000000009.log,{path}")

    assert code == 1
    assert "No such file" in errors[0]
    assert any(line.startswith("baseOffset: 0") for line in lines)
