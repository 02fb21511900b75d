"""From a class of the tables to its fields in one version, in the order of the wire."""

import types
import typing
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, TypeAlias, Union

import msgspec

from ottla.wire.fields import Fixed, NotIgnorable, Nullable, RecordBytes, Tag, Versions


@dataclass(frozen=True, slots=True)
class Text:
    """A string."""


@dataclass(frozen=True, slots=True)
class Blob:
    """Bytes with a length."""


@dataclass(frozen=True, slots=True)
class Nested:
    """One struct."""

    struct: type[msgspec.Struct]


@dataclass(frozen=True, slots=True)
class Array:
    """Many of a kind."""

    element: "Kind"


Kind: TypeAlias = Fixed | RecordBytes | Text | Blob | Nested | Array

BOOL = Fixed("?", 1)
FLOAT64 = Fixed("d", 8)

_PLAIN: dict[Any, Kind] = {str: Text(), bytes: Blob(), bool: BOOL, float: FLOAT64}


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a struct, in all versions."""

    name: str
    kind: Kind
    versions: Versions | None
    nulls: Nullable | None
    tag: int | None
    not_ignorable: bool
    default: Any
    default_is_made: bool
    """The default is a fresh list or struct each time; ``default`` is its type."""

    def is_in(self, version: int) -> bool:
        """Whether the version has the field."""
        return self.versions is None or self.versions.first <= version <= self.versions.last

    def is_nullable(self, version: int) -> bool:
        """Whether the field may be null in the version."""
        return self.nulls is not None and self.nulls.first <= version


@cache
def fields_of(struct: type[msgspec.Struct]) -> tuple[Field, ...]:
    """The table of a struct, read from its class."""
    hints = typing.get_type_hints(struct, include_extras=True)
    return tuple(_field(info, hints[info.name]) for info in msgspec.structs.fields(struct))


def _field(info: msgspec.structs.FieldInfo, hint: Any) -> Field:
    hint, facts = _strip(hint)
    facts_by_type = {type(fact): fact for fact in facts}
    kind, is_optional = _kind(hint, facts_by_type)
    nulls = facts_by_type.get(Nullable, Nullable(0) if is_optional else None)
    is_made = info.default is msgspec.NODEFAULT
    tag = facts_by_type.get(Tag)
    return Field(
        name=info.name,
        kind=kind,
        versions=facts_by_type.get(Versions),
        nulls=nulls,
        tag=tag.number if tag else None,
        not_ignorable=NotIgnorable in facts_by_type,
        default=info.default_factory if is_made else info.default,
        default_is_made=is_made,
    )


def _strip(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    if typing.get_origin(hint) is Annotated:
        return hint.__origin__, hint.__metadata__
    return hint, ()


def _kind(hint: Any, facts: dict[type, Any]) -> tuple[Kind, bool]:
    """What a type says about the wire, and whether it may be ``None``."""
    for given in (Fixed, RecordBytes):
        if given in facts:
            return facts[given], given is RecordBytes
    if typing.get_origin(hint) in (Union, types.UnionType):
        (inner,) = (option for option in typing.get_args(hint) if option is not type(None))
        inner, inner_facts = _strip(inner)
        return _kind(inner, {type(fact): fact for fact in inner_facts})[0], True
    if typing.get_origin(hint) in (tuple, list):
        element, element_facts = _strip(typing.get_args(hint)[0])
        return Array(_kind(element, {type(fact): fact for fact in element_facts})[0]), False
    return _PLAIN.get(hint) or Nested(hint), False


def size_min(kind: Kind, version: int, is_flexible: bool) -> int:
    """The fewest bytes that such a thing can take."""
    match kind:
        case Fixed():
            return kind.size
        case Text():
            return 1 if is_flexible else 2
        case Blob() | RecordBytes() | Array():
            return 1 if is_flexible else 4
        case Nested():
            fields = (f for f in fields_of(kind.struct) if f.is_in(version) and f.tag is None)
            own = sum(
                1 if isinstance(f.kind, Nested) and f.nulls else size_min(f.kind, version, is_flexible)
                for f in fields
            )
            return own + is_flexible
