"""The snapshot as bytes."""

from __future__ import annotations

import struct
from zlib import adler32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.zookeeper.ops import OPEN, Acl
from ottla.zookeeper.server.snapshot_format import MalformedSnapshot, SnapshotEncoder, decode_snapshot
from ottla.zookeeper.server.txns import StoredNode
from support.keeper.histories import ints, longs, nodes

ROOT = StoredNode("/", b"", OPEN, 0, 0, 0, 0, 0, 3, 0, 0, 9)
ADMINS = (Acl(31, "digest", "admin:secret"),)


def encoded(sessions: dict[int, int], stored: list[StoredNode], acls: set[tuple[Acl, ...]]) -> bytes:
    encoder = SnapshotEncoder(sessions, acls)
    return encoder.start() + b"".join(encoder.nodes([node]) for node in stored) + encoder.end()


@given(sessions=st.dictionaries(longs, ints, max_size=3), stored=st.lists(nodes, max_size=5))
def test_snapshot_is_read_as_it_was_written(sessions: dict[int, int], stored: list[StoredNode]) -> None:
    snapshot = decode_snapshot(encoded(sessions, [ROOT, *stored], {node.acl for node in stored} | {OPEN}))

    assert snapshot.sessions == sessions
    assert list(snapshot.nodes) == [ROOT, *stored]


def test_list_that_is_newer_than_the_table_is_left_to_the_log() -> None:
    late = StoredNode("/late", b"", ADMINS, 1, 1, 0, 0, 0, 0, 0, 0, 1)

    assert [node.acl for node in decode_snapshot(encoded({}, [ROOT, late], {OPEN})).nodes] == [OPEN, OPEN]


def test_node_whose_list_javas_table_lacks_is_open_to_nobody() -> None:
    content = bytearray(encoded({}, [ROOT], {OPEN}))
    at = content.index(struct.pack(">iiq", 0, 0, 1)) + 8
    content[at : at + 8] = struct.pack(">q", 77)
    content[-13:-5] = struct.pack(">q", adler32(content[:-13]))

    assert [node.acl[0].permissions for node in decode_snapshot(bytes(content)).nodes] == [0]


def test_sections_behind_the_first_seal_are_covered_by_the_last() -> None:
    content = encoded({1: 2}, [ROOT], {OPEN}) + struct.pack(">qiq", 9, 2, 77)
    content += struct.pack(">q", adler32(content)) + b"\0\0\0\1/"

    assert list(decode_snapshot(content).nodes) == [ROOT]
    with pytest.raises(MalformedSnapshot, match="checksum"):
        decode_snapshot(content.replace(struct.pack(">q", 77), struct.pack(">q", 78)))


@given(stored=st.lists(nodes, max_size=5), at=st.integers(0), bit=st.integers(0, 7))
def test_snapshot_with_a_flipped_bit_is_refused(stored: list[StoredNode], at: int, bit: int) -> None:
    content = bytearray(encoded({5: 6}, [ROOT, *stored], {node.acl for node in stored}))
    place = at % len(content)
    content[place] ^= 1 << bit

    with pytest.raises(MalformedSnapshot):
        decode_snapshot(bytes(content))


@pytest.mark.parametrize("size", [0, 10, 16, 40])
def test_snapshot_that_is_cut_short_is_refused(size: int) -> None:
    with pytest.raises(MalformedSnapshot):
        decode_snapshot(encoded({1: 2}, [ROOT], {OPEN})[:size])
