"""Producer snapshots: Kafka's bytes, and nothing else is taken for one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.storage.producers.snapshots import CorruptSnapshot, decode_snapshot, encode_snapshot
from ottla.storage.producers.state import ProducerState
from support.logs.builders import a_batch, a_log, append


def a_producers_batch(producer_id: int, *, in_txn: bool = False) -> bytearray:
    return a_batch(b"v", producer_id=producer_id, producer_epoch=0, sequence=0, is_transactional=in_txn)


def test_empty_snapshot_is_kafkas_ten_bytes() -> None:
    assert encode_snapshot(ProducerState()) == bytes.fromhex("000148674bc700000000")


def test_snapshot_is_10_bytes_and_46_for_each_producer() -> None:
    log = a_log()
    append(log, a_producers_batch(1))
    append(log, a_producers_batch(2, in_txn=True))

    assert len(encode_snapshot(log.producers.state)) == 10 + 2 * 46


def test_every_flipped_bit_of_a_snapshot_is_found() -> None:
    log = a_log()
    append(log, a_producers_batch(7, in_txn=True))
    content = encode_snapshot(log.producers.state)

    for bit in range(8 * len(content)):
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << (bit % 8)
        with pytest.raises(CorruptSnapshot):
            decode_snapshot(bytes(flipped), 1)


@given(st.binary(max_size=120))
def test_any_bytes_are_a_snapshot_or_corrupt(content: bytes) -> None:
    with pytest.raises(CorruptSnapshot):
        decode_snapshot(content, 1)
