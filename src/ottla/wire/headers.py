"""Request and response headers, and whole frames: size, header, body.

Flexible versions have a tag block behind the header; a request's client id is never compact, and the
response to ApiVersions never has the block, because its reader does not know the broker's versions yet.
"""

import struct
from typing import Final, NamedTuple, TypeVar

from ottla.model.errors import MalformedRequest
from ottla.wire.codec import decode, encode
from ottla.wire.compiler.caches import NULLABLE_STRINGS
from ottla.wire.compiler.decoder import skip_tags
from ottla.wire.fields import Message, Request, Response
from ottla.wire.keys import ApiKey
from ottla.wire.primitives import Buffer
from ottla.wire.versions import API_VERSIONS

_R = TypeVar("_R", bound=Response)

_FIXED_START: Final = struct.Struct(">hhi")
_FRAMED_START: Final = struct.Struct(">ihhi")
_LENGTH: Final = struct.Struct(">h")
_FRAMED_RESPONSE: Final = struct.Struct(">ii")
_CORRELATION_ID: Final = struct.Struct(">i")

_NEVER: Final = 0x7FFF
_FIRST_FLEXIBLE: Final[dict[int, int]] = {
    key: _NEVER if versions.flexible is None else versions.flexible for key, versions in API_VERSIONS.items()
}

_JOINED_BYTES_MAX: Final = 4096
"""A first part up to this size is joined to its header: one small copy is cheaper than one more buffer."""


class RequestHeader(NamedTuple):
    """Who asks what, in which version, and the number that the answer must repeat."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None


def decode_request_header(frame: Buffer) -> tuple[RequestHeader, int]:
    """The header of a request without its size, and the offset of the body."""
    try:
        api_key, api_version, correlation_id = _FIXED_START.unpack_from(frame, 0)
        position = _FIXED_START.size
        client_id = None
        if api_version or api_key != ApiKey.CONTROLLED_SHUTDOWN:
            (length,) = _LENGTH.unpack_from(frame, position)
            position += 2
            if length >= 0:
                client_id = str(frame[position : position + length], "utf-8", "replace")
                position += length
        if api_version >= _FIRST_FLEXIBLE.get(api_key, _NEVER):
            position = position + 1 if not frame[position] else skip_tags(frame, position)
    except (struct.error, IndexError) as error:
        raise MalformedRequest("the request ends inside its header") from error
    if position > len(frame):
        raise MalformedRequest("the request ends inside its header")
    return RequestHeader(api_key, api_version, correlation_id, client_id), position


def frame_request(message: Request, version: int, correlation_id: int, client_id: str | None) -> list[Buffer]:
    """A whole request, with the size in front."""
    api_key = _api_key(message)
    parts = encode(message, version)
    tail = b"" if api_key == ApiKey.CONTROLLED_SHUTDOWN and version == 0 else NULLABLE_STRINGS[client_id]
    if message.spec.is_flexible(version):
        tail += b"\0"
    size = _FIXED_START.size + len(tail) + sum(map(len, parts))
    return _joined(_FRAMED_START.pack(size, api_key, version, correlation_id) + tail, parts)


def frame_response(message: Response, version: int, correlation_id: int) -> list[Buffer]:
    """A whole response, with the size in front."""
    parts = encode(message, version)
    size = _CORRELATION_ID.size + sum(map(len, parts))
    if message.spec.is_flexible(version) and message.spec.api_key != ApiKey.API_VERSIONS:
        return _joined(_FRAMED_RESPONSE.pack(size + 1, correlation_id) + b"\0", parts)
    return _joined(_FRAMED_RESPONSE.pack(size, correlation_id), parts)


def encoded_size(message: Response, version: int) -> int:
    """The bytes of a response with its size in front, but without its header: what Kafka counts."""
    return 4 + sum(map(len, encode(message, version)))


def with_throttle_time(parts: list[Buffer], api_key: int, version: int, wait_ms: int) -> list[Buffer]:
    """A framed response whose body begins with its throttle time, told to wait so long."""
    frame = bytearray(b"".join(parts))
    offset = _FRAMED_RESPONSE.size + (version >= _FIRST_FLEXIBLE[api_key])
    _CORRELATION_ID.pack_into(frame, offset, wait_ms)
    return [frame]


def response_correlation_id(frame: Buffer) -> int:
    """The number of the request that a response, without its size, answers."""
    if len(frame) < _CORRELATION_ID.size:
        raise MalformedRequest("the response ends inside its header")
    correlation_id: int = _CORRELATION_ID.unpack_from(frame, 0)[0]
    return correlation_id


def response_body(cls: type[_R], version: int, frame: Buffer) -> _R:
    """The message of a response without its size."""
    position = _CORRELATION_ID.size
    if cls.spec.is_flexible(version) and cls.spec.api_key != ApiKey.API_VERSIONS:
        try:
            position = skip_tags(frame, position)
        except IndexError as error:
            raise MalformedRequest("the response ends inside its header") from error
    return decode(cls, version, frame, position)


def decode_response(cls: type[_R], version: int, frame: Buffer) -> tuple[int, _R]:
    """A response without its size: the number of its request, and the message."""
    return response_correlation_id(frame), response_body(cls, version, frame)


def _api_key(message: Message) -> int:
    assert message.spec.api_key is not None, "only a message of an API can be framed"
    return message.spec.api_key


def _joined(head: bytes, parts: list[Buffer]) -> list[Buffer]:
    if parts and len(parts[0]) <= _JOINED_BYTES_MAX:
        parts[0] = head + parts[0]
        return parts
    return [head, *parts]
