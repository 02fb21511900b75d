"""The transaction log as bytes."""

from __future__ import annotations

import struct
from zlib import adler32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.zookeeper.server.log_format import (
    ENTRY_HEAD_SIZE,
    LOG_HEADER,
    Entry,
    MalformedEntry,
    body_size,
    decode_entry,
    encode_entry,
    is_log_header,
)
from ottla.zookeeper.server.txn_codec import encode_txn
from ottla.zookeeper.server.txns import CloseSessionTxn, CreateTxn, DeleteTxn, SetDataTxn, Txn, TxnHeader
from support.keeper.histories import headers, txns

HEADER = TxnHeader(7, 1, 9, 1_000)


def read(content: bytes) -> Entry:
    size = body_size(content[:ENTRY_HEAD_SIZE])
    return decode_entry(content[:ENTRY_HEAD_SIZE], content[ENTRY_HEAD_SIZE : ENTRY_HEAD_SIZE + size])


def decoded(content: bytes) -> Entry:
    assert ENTRY_HEAD_SIZE + body_size(content[:ENTRY_HEAD_SIZE]) == len(content)
    return read(content)


def sealed(body: bytes) -> bytes:
    return struct.pack(">qi", adler32(body), len(body)) + body + b"\x42"


@given(header=headers, txn=txns, synced_bytes=st.integers(0, 2**40))
def test_entry_is_read_as_it_was_written(header: TxnHeader, txn: Txn, synced_bytes: int) -> None:
    assert decoded(encode_entry(header, txn, synced_bytes)) == Entry(header, txn, synced_bytes)


@given(header=headers, txn=txns)
def test_entry_of_javas_server_ends_with_a_digest_or_with_nothing(header: TxnHeader, txn: Txn) -> None:
    body = encode_txn(header, txn)

    assert decoded(sealed(body)) == Entry(header, txn, None)
    assert decoded(sealed(body + struct.pack(">iq", 2, -5))) == Entry(header, txn, None)


@given(header=headers, txn=txns, at=st.integers(0), bit=st.integers(0, 7))
def test_entry_with_a_flipped_bit_is_refused(header: TxnHeader, txn: Txn, at: int, bit: int) -> None:
    content = bytearray(encode_entry(header, txn, 16))
    content[at % len(content)] ^= 1 << bit

    with pytest.raises(MalformedEntry):
        read(bytes(content))


@pytest.mark.parametrize(
    ("kind", "body", "txn"),
    [
        (15, encode_txn(HEADER, CreateTxn("/a", b"", (), False, 3)), CreateTxn("/a", b"", (), False, 3)),
        (20, encode_txn(HEADER, DeleteTxn("/a")), DeleteTxn("/a")),
        (16, encode_txn(HEADER, SetDataTxn("/a", None, 2)), SetDataTxn("/a", None, 2)),
        (-11, encode_txn(HEADER, DeleteTxn("/a"))[:32], CloseSessionTxn(())),
    ],
    ids=["create2", "deleteContainer", "reconfig", "closeSession of 3.5"],
)
def test_kinds_that_change_the_tree_alike_are_one_value(kind: int, body: bytes, txn: Txn) -> None:
    body = body[:28] + struct.pack(">i", kind) + body[32:]

    assert decoded(sealed(body)).txn == txn


@pytest.mark.parametrize("kind", [0, 3, 14, -10, -11])
def test_multi_holds_only_what_a_client_may_put_into_one(kind: int) -> None:
    body = struct.pack(">qiqqiiii", 7, 1, 9, 1_000, 14, 1, kind, 4) + bytes(4)

    with pytest.raises(MalformedEntry, match=f"kind {kind} inside a multi"):
        decoded(sealed(body))


def test_zeros_end_the_entries() -> None:
    assert body_size(bytes(ENTRY_HEAD_SIZE)) == 0


def test_header_names_a_log_of_version_2() -> None:
    assert is_log_header(LOG_HEADER)
    assert is_log_header(LOG_HEADER[:8] + b"database")
    assert not is_log_header(b"ZKSN" + LOG_HEADER[4:])
    assert not is_log_header(LOG_HEADER[:15])
