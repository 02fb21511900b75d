"""Bytes that are no proper request: sizes, headers, versions and bodies that cannot be."""

from __future__ import annotations

import struct

from ottla.wire.apis import message_classes
from ottla.wire.apis.api_versions import ApiVersionsRequest
from ottla.wire.apis.metadata import MetadataRequest
from ottla.wire.headers import frame_request
from ottla.wire.keys import ApiKey
from ottla.wire.versions import API_VERSIONS
from support.differential.cases.metadata import metadata
from support.differential.talk import Cases, Talk
from support.wire.messages import SPOKEN

CASES = Cases()
OVER_THE_LIMIT = 104_857_601  # socket.request.max.bytes and one


def frame(
    key: int, version: int, body: bytes = b"", client_id: bytes | None = b"judge", flexible: bool = False
) -> bytes:
    client = struct.pack(">h", -1) if client_id is None else struct.pack(">h", len(client_id)) + client_id
    content = struct.pack(">hhi", key, version, 7) + client + (b"\0" if flexible else b"") + body
    return struct.pack(">i", len(content)) + content


def still_answers(talk: Talk) -> None:
    metadata(talk, 1, talk.topic("tiny"), note="afterwards")


@CASES.add_for(
    ("size 0", struct.pack(">i", 0)),
    ("size -1", struct.pack(">i", -1)),
    ("smallest size", struct.pack(">i", -(2**31))),
    ("size over the limit", struct.pack(">i", OVER_THE_LIMIT)),
    ("largest size", struct.pack(">i", 2**31 - 1)),
    ("a size of an HTTP request", b"GET / HTTP/1.1\r\n\r\n"),
    ("a TLS greeting", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"),
    ("half a header", struct.pack(">ihh", 4, 3, 1)),
    ("a header without its client id", struct.pack(">ihhi", 8, 3, 1, 7)),
    ("a client id longer than the frame", struct.pack(">ihhih", 10, 3, 1, 7, 500)),
    ("a client id of length -2", struct.pack(">ihhih", 10, 3, 1, 7, -2)),
)
def a_frame_with(talk: Talk, given: tuple[str, bytes]) -> None:
    name, data = given
    talk.ask_frame(name, data)
    still_answers(talk)


@CASES.add_for(-1, 52, 53, 59, 62, 70, 99, 32_767)
def a_request_with_the_unknown_key(talk: Talk, key: int) -> None:
    talk.ask_frame(f"key {key}", frame(key, 0))
    still_answers(talk)


@CASES.add_for(*[key for key in SPOKEN if key != ApiKey.API_VERSIONS])
def a_request_in_a_version_too_high_of(talk: Talk, key: ApiKey) -> None:
    version = API_VERSIONS[key].last + 1
    request_class, _ = message_classes(key)
    flexible = API_VERSIONS[key].flexible is not None
    body = b"".join(frame_request(request_class(), API_VERSIONS[key].last, 7, "judge"))[4:]
    talk.ask_frame(f"{key.name} v{version}", frame(key, version, body[15:], flexible=flexible))


@CASES.add_for(ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.METADATA, ApiKey.API_VERSIONS)
def a_request_in_version_minus_1_of(talk: Talk, key: ApiKey) -> None:
    talk.ask_frame(f"{key.name} v-1", frame(key, -1), ApiVersionsRequest(), 0)
    still_answers(talk)


@CASES.add_for(5, 99, 32_767)
def api_versions_in_the_version_of_the_future(talk: Talk, version: int) -> None:
    data = frame(ApiKey.API_VERSIONS, version, b"\x06judge\x041.0\0", flexible=True)
    talk.ask_frame(f"v{version}", data, ApiVersionsRequest(), 0)
    still_answers(talk)


@CASES.add_for(
    ("cut", b""),
    ("a count without elements", struct.pack(">i", 3)),
    ("a count beyond all bounds", struct.pack(">i", 2**31 - 1)),
    ("a negative count", struct.pack(">i", -9)),
    ("a string longer than the frame", struct.pack(">ih", 1, 999)),
    ("a null string", struct.pack(">ih", 1, -1)),
    ("a string that is no text", struct.pack(">ih", 1, 2) + b"\xff\xfe"),
)
def a_metadata_request_with(talk: Talk, given: tuple[str, bytes]) -> None:
    name, body = given
    talk.ask_frame(name, frame(ApiKey.METADATA, 1, body), MetadataRequest(), 1)
    still_answers(talk)


@CASES.add_for(
    ("bytes behind it", b"\x01\0\0\0\0\0\0"),
    ("an endless varint", b"\xff" * 12),
    ("a huge count", b"\xff\xff\xff\xff\x07"),
    ("an unknown tag", b"\x01\0\0\x01\x63\x02ab"),
    ("a tag longer than the frame", b"\x01\0\0\x01\x63\x7fab"),
)
def a_flexible_metadata_request_with(talk: Talk, given: tuple[str, bytes]) -> None:
    name, body = given
    talk.ask_frame(name, frame(ApiKey.METADATA, 12, body, flexible=True), MetadataRequest(), 12)
    still_answers(talk)


@CASES.add_for(
    ("no client id", None),
    ("an empty client id", b""),
    ("a client id that is no text", b"\xff\xfe"),
    ("a long one", b"c" * 5_000),
)
def a_request_with(talk: Talk, given: tuple[str, bytes | None]) -> None:
    name, client_id = given
    body = struct.pack(">i", 0)
    talk.ask_frame(name, frame(ApiKey.METADATA, 1, body, client_id), MetadataRequest(), 1)
    still_answers(talk)


@CASES.add
def two_requests_at_once_are_answered_in_order(talk: Talk) -> None:
    first = frame(ApiKey.METADATA, 1, struct.pack(">i", 0))
    talk.ask_frame("the first of two", first + first, MetadataRequest(), 1)
    talk.ask_frame("the second, asked for by nothing", b"", MetadataRequest(), 1)
