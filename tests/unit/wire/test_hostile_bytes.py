"""Whatever bytes come, a decoder gives a sound message or says that they are malformed, and takes no memory
on the word of a length."""

import os
import random
import struct
import tracemalloc
from random import Random

import pytest

from ottla.model.errors import MalformedRequest
from ottla.wire.apis.fetch import FetchResponse
from ottla.wire.apis.list_transactions import ListTransactionsRequest
from ottla.wire.apis.metadata import MetadataRequest, MetadataResponse
from ottla.wire.apis.offset_fetch import OffsetFetchRequest
from ottla.wire.apis.produce import ProduceRequest
from ottla.wire.codec import decode, encode_bytes
from ottla.wire.compiler.caches import COMPACT_STRINGS, DECODED_INT32S, ENTRIES_MAX
from ottla.wire.fields import Message
from ottla.wire.headers import decode_request_header, decode_response, frame_request
from ottla.wire.primitives import read_uvarint
from support.wire.messages import all_message_classes, versions_of
from support.wire.random_messages import mutated, random_struct

FRAMES = int(os.environ.get("OTTLA_FUZZ_FRAMES", "3000"))


@pytest.mark.slow
def test_mutated_messages_are_read_soundly_or_refused() -> None:
    rng = Random(random.getrandbits(64))
    versions = [(cls, version) for cls in all_message_classes() for version in versions_of(cls)]
    refused = 0

    for n in range(FRAMES):
        cls, version = versions[n % len(versions)]
        frame = mutated(encode_bytes(random_struct(cls, version, rng), version), rng)
        try:
            message = decode(cls, version, frame)
        except MalformedRequest:
            refused += 1
            continue
        again = encode_bytes(message, version)
        assert encode_bytes(decode(cls, version, again), version) == again

    assert 0 < refused < FRAMES


def test_mutated_frames_have_a_header_or_are_refused() -> None:
    rng = Random(random.getrandbits(64))
    refused = 0

    for _ in range(FRAMES):
        version = rng.randrange(13)
        frame = mutated(b"".join(frame_request(MetadataRequest(), version, 7, "client"))[4:], rng)
        try:
            _, body = decode_request_header(frame)
        except MalformedRequest:
            refused += 1
        else:
            assert body <= len(frame)

    assert 0 < refused < FRAMES


COUNT_MAX = b"\xff\xff\xff\xff\x07"


@pytest.mark.parametrize(
    ("cls", "version", "hostile"),
    [
        (MetadataRequest, 12, COUNT_MAX),
        (MetadataRequest, 1, b"\x7f\xff\xff\xff"),
        (MetadataResponse, 12, bytes(4) + COUNT_MAX),
        (ProduceRequest, 9, b"\0" + bytes(6) + COUNT_MAX),
        (ProduceRequest, 9, b"\0" + bytes(6) + b"\x02\x02t\x02" + bytes(4) + COUNT_MAX),
        (FetchResponse, 17, bytes(10) + COUNT_MAX),
        (ListTransactionsRequest, 1, b"\x01" + COUNT_MAX),
        (OffsetFetchRequest, 1, b"\0\x01g" + b"\0\0\0\x01\0\x01t" + b"\x7f\xff\xff\xff"),
        (OffsetFetchRequest, 8, b"\x02\x02g\x02\x02t" + COUNT_MAX),
        (MetadataRequest, 12, b"\x01" + bytes(2) + COUNT_MAX),
    ],
)
def test_a_count_beyond_the_bytes_is_refused_before_memory_is_taken(
    cls: type[Message], version: int, hostile: bytes
) -> None:
    decode_once = encode_bytes(cls(), version)
    decode(cls, version, decode_once)
    frame = hostile + bytes(1000)
    tracemalloc.start()
    try:
        with pytest.raises(MalformedRequest):
            decode(cls, version, frame)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 100_000


@pytest.mark.slow
def test_every_truncation_of_a_message_is_refused() -> None:
    rng = Random(5)
    for cls in all_message_classes():
        version = cls.spec.versions[1]
        encoded = encode_bytes(random_struct(cls, version, rng), version)
        for size in range(len(encoded)):
            with pytest.raises(MalformedRequest):
                decode(cls, version, encoded[:size])


def test_a_version_that_does_not_exist_is_refused() -> None:
    for version in (-1, 13, 32_767):
        with pytest.raises(MalformedRequest):
            decode(MetadataRequest, version, bytes(100))


def test_a_response_without_a_whole_header_is_refused() -> None:
    for frame in (b"", b"\0\0\0", b"\0\0\0\1", b"\0\0\0\1\x80"):
        with pytest.raises(MalformedRequest):
            decode_response(MetadataResponse, 12, frame)


@pytest.mark.parametrize("encoded", [b"\xff" * 5, b"\x80" * 5 + b"\0", b"\xff\xff\xff\xff\x08"])
def test_a_varint_of_more_than_31_bits_is_refused(encoded: bytes) -> None:
    with pytest.raises(MalformedRequest):
        read_uvarint(encoded, 0)


def test_caches_forget_rather_than_grow() -> None:
    for n in range(2 * ENTRIES_MAX + 10):
        COMPACT_STRINGS[f"name-{n}"]
        DECODED_INT32S[struct.pack(">i", n)]
    COMPACT_STRINGS["x" * 1000]
    DECODED_INT32S[bytes(4000)]

    assert len(COMPACT_STRINGS) <= ENTRIES_MAX
    assert len(DECODED_INT32S) <= ENTRIES_MAX
    assert "x" * 1000 not in COMPACT_STRINGS
    assert bytes(4000) not in DECODED_INT32S
