"""Offset, time and transaction indexes against the simplest thing that could be true."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ottla.storage.segment.offset_index import OffsetIndex, decode_offset_index
from ottla.storage.segment.time_index import TimeIndex, decode_time_index
from ottla.storage.segment.txn_index import AbortedTransaction, decode_txn_index, encode_aborted

BASE = 1_000
STEPS = st.lists(st.tuples(st.integers(1, 50), st.integers(1, 5_000)), max_size=40)


def entries_of(steps: list[tuple[int, int]]) -> list[tuple[int, int]]:
    offset, position = BASE - 1, 0
    entries = []
    for more_offsets, more_bytes in steps:
        offset, position = offset + more_offsets, position + more_bytes
        entries.append((offset, position))
    return entries


def an_index(entries: list[tuple[int, int]]) -> OffsetIndex:
    index = OffsetIndex(BASE)
    for offset, position in entries:
        index.append(offset, position)
    return index


@given(STEPS, st.integers(BASE, BASE + 2_500))
def test_offset_floor_is_the_last_entry_not_above(steps: list[tuple[int, int]], offset: int) -> None:
    entries = entries_of(steps)

    assert an_index(entries).floor(offset) == max((e for e in entries if e[0] <= offset), default=(BASE, 0))


@given(STEPS, st.integers(0, 210_000))
def test_position_floor_and_ceiling_are_neighbours(steps: list[tuple[int, int]], position: int) -> None:
    entries = entries_of(steps)
    index = an_index(entries)

    assert index.floor_position(position) == max((p for _, p in entries if p <= position), default=0)
    above = [offset for offset, p in entries if p >= position]
    assert index.offset_at_or_above_position(position) == (above[0] if above else None)


@given(STEPS, st.integers(BASE, BASE + 2_500))
def test_truncated_offset_index_has_nothing_at_or_behind_the_offset(
    steps: list[tuple[int, int]], offset: int
) -> None:
    entries = entries_of(steps)
    index = an_index(entries)

    index.truncate_to(offset)

    assert index.entries() == [e for e in entries if e[0] < offset]


@given(STEPS)
def test_offset_index_is_read_as_written(steps: list[tuple[int, int]]) -> None:
    entries = entries_of(steps)
    content = an_index(entries).encoded()

    assert len(content) == 8 * len(entries)
    decoded = decode_offset_index(BASE, content, 10**9)
    assert decoded is not None
    assert decoded.entries() == entries


def test_offset_index_bytes_are_kafkas() -> None:
    index = OffsetIndex(100)
    index.append(107, 4_200)

    assert index.encoded() == bytes.fromhex("0000000700001068")


def test_impossible_offset_index_is_none() -> None:
    good = an_index([(BASE + 5, 10), (BASE + 9, 20)]).encoded()

    assert decode_offset_index(BASE, good[:-1], 100) is None
    assert decode_offset_index(BASE, good[8:] + good[:8], 100) is None
    assert decode_offset_index(BASE, good, 20) is None
    assert decode_offset_index(BASE, good + bytes(8), 100) is None


TIMES = st.lists(st.tuples(st.integers(-1, 500), st.integers(1, 9)), max_size=40)


@given(TIMES, st.integers(-1, 510))
def test_time_index_keeps_rising_maxima_and_finds_the_last_one_before(
    times: list[tuple[int, int]], at: int
) -> None:
    index, expected, offset = TimeIndex(BASE), [], BASE
    for timestamp, more in times:
        offset += more
        index.maybe_append(timestamp, offset)
        if timestamp > max((t for t, _ in expected), default=-1):
            expected.append((timestamp, offset))

    assert index.entries() == expected
    assert index.floor(at) == max((e for e in expected if e[0] < at), default=(-1, BASE))
    decoded = decode_time_index(BASE, index.encoded())
    assert decoded is not None
    assert decoded.entries() == expected


@given(TIMES, st.integers(BASE, BASE + 300))
def test_truncated_time_index_has_nothing_at_or_behind_the_offset(
    times: list[tuple[int, int]], cut: int
) -> None:
    index, offset = TimeIndex(BASE), BASE
    for timestamp, more in times:
        offset += more
        index.maybe_append(timestamp, offset)
    before = index.entries()

    index.truncate_to(cut)

    assert index.entries() == [e for e in before if e[1] < cut]


def test_time_index_bytes_are_kafkas() -> None:
    index = TimeIndex(100)
    index.maybe_append(1_700_000_000_000, 107)

    assert index.encoded() == bytes.fromhex("0000018bcfe5680000000007")


@given(st.binary(max_size=120))
def test_any_bytes_are_an_index_or_none(content: bytes) -> None:
    decode_time_index(BASE, content)
    decode_txn_index(content, BASE)
    index = decode_offset_index(BASE, content, 10_000)
    assert index is None or index.encoded() == content


def test_aborted_transactions_are_read_as_written() -> None:
    entries = [
        AbortedTransaction(7, BASE + 1, BASE + 5, BASE + 6),
        AbortedTransaction(8, BASE, BASE + 9, BASE + 10),
    ]

    content = b"".join(map(encode_aborted, entries))

    assert len(content) == 68
    assert decode_txn_index(content, BASE) == entries
    assert decode_txn_index(content[:-1], BASE) is None
    assert decode_txn_index(content[34:] + content[:34], BASE) is None
