"""Messages to bytes and back. Each (message, version) gets its own two functions, compiled at first use."""

import struct
from typing import TypeVar

from ottla.model.errors import MalformedRequest
from ottla.wire.compiler.decoder import compile_decoder
from ottla.wire.compiler.encoder import UnsupportedVersion, compile_encoder
from ottla.wire.fields import Decoder, Encoder, Message
from ottla.wire.primitives import Buffer

__all__ = ["UnsupportedVersion", "decode", "decode_prefix", "encode", "encode_bytes"]

_M = TypeVar("_M", bound=Message)


def encode(message: Message, version: int) -> list[Buffer]:
    """The message's bytes in parts: record batches are parts of their own, not copied."""
    spec = message.spec
    encoder = spec.encoders[version] if 0 <= version <= spec.versions[1] else None
    if encoder is None:
        encoder = _new_encoder(type(message), version)
    return encoder(message)


def encode_bytes(message: Message, version: int) -> bytes:
    """The message's bytes in one piece."""
    parts = encode(message, version)
    if len(parts) == 1 and isinstance(parts[0], bytes):
        return parts[0]
    return b"".join(parts)


def decode(cls: type[_M], version: int, buffer: Buffer, offset: int = 0) -> _M:
    """The message at an offset; what follows it is not looked at."""
    return decode_prefix(cls, version, buffer, offset)[0]


def decode_prefix(cls: type[_M], version: int, buffer: Buffer, offset: int = 0) -> tuple[_M, int]:
    """The message at an offset, and the offset behind it."""
    spec = cls.spec
    decoder = spec.decoders[version] if 0 <= version <= spec.versions[1] else None
    if decoder is None:
        decoder = _new_decoder(cls, version)
    try:
        return decoder(buffer, offset)
    except (struct.error, IndexError) as error:
        raise MalformedRequest(f"{cls.__name__} v{version}: the message ends too early") from error


def _new_encoder(cls: type[Message], version: int) -> Encoder:
    first, last = cls.spec.versions
    if not first <= version <= last:
        raise UnsupportedVersion(f"{cls.__name__} has no version {version}")
    encoder = cls.spec.encoders[version] = compile_encoder(cls, version)
    return encoder


def _new_decoder(cls: type[Message], version: int) -> Decoder:
    first, last = cls.spec.versions
    if not first <= version <= last:
        raise MalformedRequest(f"{cls.__name__} has no version {version}")
    decoder = cls.spec.decoders[version] = compile_decoder(cls, version)
    return decoder
