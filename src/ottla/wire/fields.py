"""The language of the message tables: one class per struct, one line per field.

A field's Python type says how it is written, ``Annotated`` says when::

    class MetadataResponsePartition(Struct):
        error_code: i16 = 0
        leader_epoch: Annotated[i32, since(7)] = -1
        isr_nodes: tuple[i32, ...] = ()

``str``, ``bytes``, ``bool`` and ``float`` (64 bits) stand for themselves, ``tuple[x, ...]`` is an array
of numbers or strings, ``list[X]`` an array of structs, ``X`` one struct. A type that may be ``None`` is
nullable in all versions of its field, unless ``nullable(first)`` says since when. A field that a version
lacks keeps its default when that version is read. The versions of a whole message are in ``versions.py``.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, TypeAlias

import msgspec

from ottla.wire.keys import ApiKey
from ottla.wire.primitives import Buffer
from ottla.wire.versions import API_VERSIONS


@dataclass(frozen=True, slots=True)
class Fixed:
    """A type of fixed width, by its letter in ``struct``'s language."""

    letter: str
    size: int


@dataclass(frozen=True, slots=True)
class RecordBytes:
    """Record batches: bytes with a four-byte (or compact) length, never copied."""


@dataclass(frozen=True, slots=True)
class Versions:
    """A field is there from one version to another, both included."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Nullable:
    """A field may be null from this version on."""

    first: int


@dataclass(frozen=True, slots=True)
class Tag:
    """A tagged field: written in the tag block of its struct, and only when it is not the default."""

    number: int


@dataclass(frozen=True, slots=True)
class NotIgnorable:
    """A request must not be sent in a version that would drop this field's value silently."""


EVER = 0x7FFF

i8: TypeAlias = Annotated[int, Fixed("b", 1)]
i16: TypeAlias = Annotated[int, Fixed("h", 2)]
i32: TypeAlias = Annotated[int, Fixed("i", 4)]
i64: TypeAlias = Annotated[int, Fixed("q", 8)]
uuid: TypeAlias = Annotated[bytes, Fixed("16s", 16)]
RecordBatches: TypeAlias = Annotated[Buffer | None, RecordBytes()]

not_ignorable = NotIgnorable()


def since(first: int) -> Versions:
    """The field came with this version."""
    return Versions(first, EVER)


def until(last: int) -> Versions:
    """The field went after this version."""
    return Versions(0, last)


def between(first: int, last: int) -> Versions:
    """The field came with one version and went after another."""
    return Versions(first, last)


def nullable(first: int) -> Nullable:
    """The field may be null since this version, though it is older."""
    return Nullable(first)


def tag(number: int) -> Tag:
    """The field travels in the tag block, under this number."""
    return Tag(number)


_KEYS = {key.spelling: key for key in ApiKey}

Encoder: TypeAlias = Callable[[Any], list[Buffer]]
Decoder: TypeAlias = Callable[[Buffer, int], tuple[Any, int]]


@dataclass(eq=False, slots=True)
class Spec:
    """What holds for a whole message: its API, its versions, and the codecs compiled so far."""

    versions: tuple[int, int]
    flexible: int | None
    """The first flexible version: compact lengths and tag blocks; ``None`` if there is none."""

    api_key: ApiKey | None = None
    encoders: list[Encoder | None] = field(init=False, repr=False)
    decoders: list[Decoder | None] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.encoders = [None] * (self.versions[1] + 1)
        self.decoders = [None] * (self.versions[1] + 1)

    def is_flexible(self, version: int) -> bool:
        """Whether a version uses compact lengths and tag blocks (and the newer header)."""
        return self.flexible is not None and version >= self.flexible


class Struct(msgspec.Struct, gc=False):
    """A struct of the protocol, the same class in all versions. It is never part of a reference cycle."""


class FrozenStruct(msgspec.Struct, gc=False, frozen=True):
    """A single struct inside another one. It is immutable, so that one default serves all."""


class Message(Struct):
    """A struct that is read and written on its own."""

    spec: ClassVar[Spec]


class _OfApi(Message):
    """A message named after its API, ``LeaderAndIsrRequest``: what holds for it follows from its name."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        key = _KEYS.get(cls.__name__.removesuffix("Request").removesuffix("Response"))
        if key is not None:
            first, last, flexible = API_VERSIONS[key]
            cls.spec = Spec(versions=(first, last), flexible=flexible, api_key=key)


class Request(_OfApi):
    """What a client, or another broker, asks."""


class Response(_OfApi):
    """What is answered."""
