"""Checkpoint files: Kafka's bytes, there and back; anything else is refused in one way."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.model.ids import TopicId, TopicPartition
from ottla.storage.disk.checkpoints import (
    CorruptCheckpoint,
    MetaProperties,
    decode_meta_properties,
    decode_offsets,
    decode_partition_metadata,
    encode_meta_properties,
    encode_offsets,
    encode_partition_metadata,
)

TOPIC_ID = TopicId(bytes(range(1, 17)))
TOPICS = st.text("abcXYZ019._-", min_size=1, max_size=12)


def test_offsets_are_written_as_kafka_writes_them() -> None:
    offsets = {TopicPartition("orders", 3): 42, TopicPartition("a.b_c-d", 0): 0}

    assert encode_offsets(offsets) == b"0\n2\norders 3 42\na.b_c-d 0 0\n"


@given(st.dictionaries(st.builds(TopicPartition, TOPICS, st.integers(0, 9_999)), st.integers(0, 2**63 - 1)))
def test_offsets_are_read_as_written(offsets: dict[TopicPartition, int]) -> None:
    assert decode_offsets(encode_offsets(offsets)) == offsets


def test_partition_metadata_is_43_bytes_without_a_newline() -> None:
    content = encode_partition_metadata(TOPIC_ID)

    assert content == b"version: 0\ntopic_id: AQIDBAUGBwgJCgsMDQ4PEA"
    assert len(content) == 43
    assert decode_partition_metadata(content) == TOPIC_ID


def test_meta_properties_are_a_java_properties_file() -> None:
    content = encode_meta_properties(MetaProperties(7, "abc"), "Thu Jan 01 00:00:00 UTC 1970")

    assert content.splitlines()[:2] == [b"#", b"#Thu Jan 01 00:00:00 UTC 1970"]
    assert set(content.splitlines()[2:]) == {b"version=0", b"broker.id=7", b"cluster.id=abc"}
    assert decode_meta_properties(content) == MetaProperties(7, "abc")


@pytest.mark.parametrize(
    "content",
    [
        b"1\n0\n",
        b"0\n1\n",
        b"0\n0\nx 0 1\n",
        b"0\n1\nx 0\n",
        b"0\n1\nx y 1\n",
        b"0\n1\nx 0 1",
        b"0",
        b"\xff\xfe\n",
        b"0\n-1\n",
        b"0\n99999999999\n",
        b"\0\0\0\0\n",
    ],
)
def test_broken_offset_checkpoint_is_corrupt(content: bytes) -> None:
    with pytest.raises(CorruptCheckpoint):
        decode_offsets(content)


@pytest.mark.parametrize("decode", [decode_offsets, decode_partition_metadata, decode_meta_properties])
@given(content=st.binary(max_size=60) | st.text("0123 \n-.ab", max_size=40).map(str.encode))
def test_any_bytes_are_read_or_corrupt(decode: Callable[[bytes], object], content: bytes) -> None:
    try:
        decode(content)
    except CorruptCheckpoint:
        return
