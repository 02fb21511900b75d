"""The leader-epoch checkpoint: read as written, and refused when torn."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.storage.disk.checkpoints import CorruptCheckpoint
from ottla.storage.log.epoch_checkpoint import decode_epochs, encode_epochs
from ottla.storage.log.leader_epochs import EpochEntry


@given(st.lists(st.builds(EpochEntry, st.integers(0, 2**31 - 1), st.integers(0, 2**63 - 1))))
def test_epochs_are_read_as_written(entries: list[EpochEntry]) -> None:
    assert decode_epochs(encode_epochs(entries)) == entries


def test_empty_epoch_file_knows_no_epoch() -> None:
    assert decode_epochs(b"") == []


@given(content=st.binary(max_size=60) | st.text("0123 \n-.ab", max_size=40).map(str.encode))
def test_any_bytes_are_read_or_corrupt(content: bytes) -> None:
    try:
        decode_epochs(content)
    except CorruptCheckpoint:
        return


def test_checkpoint_torn_inside_its_last_number_is_corrupt() -> None:
    """An epoch file has no checksum: `1 10` torn to `1 1` would be a lie."""
    whole = encode_epochs([EpochEntry(0, 0), EpochEntry(1, 10)])

    for end in range(1, len(whole)):
        with pytest.raises(CorruptCheckpoint):
            decode_epochs(whole[:end])
