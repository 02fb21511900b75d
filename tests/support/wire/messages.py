"""Random messages of every API, and the same message as one of its versions would carry it."""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from hypothesis import strategies as st

from ottla.broker.apis import APIS
from ottla.wire.apis import message_classes
from ottla.wire.compiler.layout import Array, Blob, Field, Kind, Nested, Text, fields_of
from ottla.wire.fields import Fixed, Message, RecordBytes, Request
from ottla.wire.keys import ApiKey

Limit = Callable[[type[msgspec.Struct], Field], "st.SearchStrategy[Any] | None"]
"""What a judge of the bytes can take in a field, where that is less than what the protocol can carry."""


def no_limit(struct: type[msgspec.Struct], field: Field) -> "st.SearchStrategy[Any] | None":
    return None


SPOKEN = [api.key for api in APIS]
"""APIs with tables. Envelope and the new group protocol need KRaft, so Ottla has none for them."""


def all_message_classes() -> list[type[Message]]:
    return [cls for key in SPOKEN for cls in message_classes(key)]


JUDGED_UP_TO = {ApiKey.INIT_PRODUCER_ID: 5}
"""Kafka 3.9, and with it every judge, ends here where we go on."""


def versions_of(cls: type[Message]) -> range:
    """The versions that a judge can read, too."""
    first, last = cls.spec.versions
    key = cls.spec.api_key
    return range(first, (last if key is None else JUDGED_UP_TO.get(key, last)) + 1)


TEXTS = st.one_of(
    st.sampled_from(["", "orders", "a" * 126, "a" * 127, "ü" * 64, "x" * 300, "\U0001f427"]),
    st.text(st.characters(codec="utf-8"), max_size=8),
)
BLOBS = st.one_of(st.sampled_from([b"", bytes(126), bytes(127), b"x" * 20_000]), st.binary(max_size=8))
NUMBERS = {
    "b": st.integers(-(2**7), 2**7 - 1),
    "h": st.integers(-(2**15), 2**15 - 1),
    "i": st.integers(-(2**31), 2**31 - 1),
    "q": st.integers(-(2**63), 2**63 - 1),
    "H": st.integers(0, 2**16 - 1),
    "d": st.floats(allow_nan=False),
    "?": st.booleans(),
    "16s": st.one_of(st.just(bytes(16)), st.binary(min_size=16, max_size=16)),
}


def structs(struct: type[msgspec.Struct], limit: Limit = no_limit) -> "st.SearchStrategy[Any]":
    """Structs with every field of every version set to anything."""
    return st.builds(struct, **{field.name: _values(struct, field, limit) for field in fields_of(struct)})


def _values(struct: type[msgspec.Struct], field: Field, limit: Limit) -> "st.SearchStrategy[Any]":
    values = limit(struct, field)
    if values is None:
        values = _of_kind(field.kind, limit)
    return st.one_of(st.none(), values) if field.nulls else values


def _of_kind(kind: Kind, limit: Limit) -> "st.SearchStrategy[Any]":
    match kind:
        case Fixed():
            return NUMBERS[kind.letter]
        case Text():
            return TEXTS
        case Blob() | RecordBytes():
            return BLOBS
        case Nested():
            return structs(kind.struct, limit)
        case Array():
            many = st.lists(_of_kind(kind.element, limit), max_size=2)
            return many if isinstance(kind.element, Nested) else many.map(tuple)


def as_of(message: Any, version: int) -> Any:
    """The message as one of its versions carries it: what the version lacks has its default."""
    values = {}
    for field in fields_of(type(message)):
        value = getattr(message, field.name)
        if field.is_in(version) and not (value is None and not field.is_nullable(version)):
            values[field.name] = _value_as_of(value, version)
    return type(message)(**values)


def _value_as_of(value: Any, version: int) -> Any:
    if isinstance(value, msgspec.Struct):
        return as_of(value, version)
    if isinstance(value, list):
        return [as_of(item, version) for item in value]
    return value


def plain(message: Any) -> Any:
    """The message with its views of record bytes turned into bytes, so that it can be compared."""
    if isinstance(message, memoryview):
        return bytes(message)
    if isinstance(message, list):
        return [plain(item) for item in message]
    if isinstance(message, msgspec.Struct):
        names = (field.name for field in fields_of(type(message)))
        return type(message)(**{name: plain(getattr(message, name)) for name in names})
    return message


def is_request(cls: type[Message]) -> bool:
    return issubclass(cls, Request)


def fields_below(cls: type[msgspec.Struct]) -> Iterator[tuple[type[msgspec.Struct], Field]]:
    """Every field of a struct and of the structs inside it."""
    for field in fields_of(cls):
        yield cls, field
        inner = field.kind.element if isinstance(field.kind, Array) else field.kind
        if isinstance(inner, Nested):
            yield from fields_below(inner.struct)
