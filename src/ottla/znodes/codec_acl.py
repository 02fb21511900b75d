"""Kafka's znodes of access rules, and the notes of their changes."""

from collections.abc import Iterable
from typing import Any, Final, TypeVar

import msgspec

from ottla.security.acls.kinds import (
    TYPES,
    Entry,
    Operation,
    PatternType,
    Permission,
    Resource,
    ResourceType,
)
from ottla.znodes.codec import MalformedZnode, read_json, write_json

K = TypeVar("K", ResourceType, Operation, Permission, PatternType)

LITERAL: Final = "/kafka-acl"
PREFIXED: Final = "/kafka-acl-extended/prefixed"
LITERAL_CHANGES: Final = "/kafka-acl-changes"
EXTENDED_CHANGES: Final = "/kafka-acl-extended-changes"
CHANGE_LISTS: Final = (LITERAL_CHANGES, EXTENDED_CHANGES)
PERSISTENT: Final = (
    *CHANGE_LISTS,
    *(f"{root}/{kind.title}" for root in (LITERAL, PREFIXED) for kind in TYPES),
)
"""What an authorizer makes at its start, with the parents."""


def parent(kind: ResourceType, pattern: PatternType) -> str:
    """Where the resources of one kind stand."""
    return f"{PREFIXED if pattern is PatternType.PREFIXED else LITERAL}/{kind.title}"


def path(resource: Resource) -> str:
    """Where the rules of one resource stand."""
    return f"{parent(resource.type, resource.pattern)}/{resource.name}"


class _Entry(msgspec.Struct):
    principal: str
    permissionType: str
    operation: str
    host: str


class _Acls(msgspec.Struct):
    version: int
    acls: list[_Entry] = []


def encode(entries: Iterable[Entry]) -> bytes:
    """The keys in the order of Kafka's maps; the entries in one of our own."""
    rows = [
        {
            "principal": entry.principal,
            "permissionType": entry.permission.title,
            "host": entry.host,
            "operation": entry.operation.title,
        }
        for entry in sorted(entries)
    ]
    return write_json({"acls": rows, "version": 1})


def decode(data: bytes | None, what: str) -> frozenset[Entry]:
    """What a node says; one of another version, or with an unknown word, cannot be read as a whole."""
    if not data:
        return frozenset()
    node = read_json(data, _Acls, what)
    if node.version != 1:
        raise MalformedZnode(f"{what}: version {node.version} is not 1")
    return frozenset(
        Entry(
            row.principal,
            row.host,
            _named(Operation, row.operation, what),
            _named(Permission, row.permissionType, what),
        )
        for row in node.acls
    )


def _named(kind: type[K], text: str, what: str) -> K:
    """A value by its name, in any case and with or without underscores."""
    wanted = text.replace("_", "").lower()
    for value in kind:
        if value > 1 and value.name.replace("_", "").lower() == wanted:
            return value
    raise MalformedZnode(f"{what}: {text!r} is no {kind.__name__}")


class _Change(msgspec.Struct):
    version: int
    resourceType: str
    name: str
    patternType: str


def change_note(resource: Resource) -> tuple[str, bytes]:
    """The prefix of the note's path, and the note."""
    if resource.pattern is PatternType.LITERAL:
        return f"{LITERAL_CHANGES}/acl_changes_", f"{resource.type.name}:{resource.name}".encode()
    note: dict[str, Any] = {
        "version": 1,
        "resourceType": resource.type.name,
        "name": resource.name,
        "patternType": resource.pattern.name,
    }
    return f"{EXTENDED_CHANGES}/acl_changes_", write_json(note)


def decode_change(data: bytes | None, changes: str) -> Resource:
    """Which resource a note is about."""
    what = f"note under {changes}"
    if changes == EXTENDED_CHANGES:
        note = read_json(data, _Change, what)
        pattern = _named(PatternType, note.patternType, what)
        return Resource(_named(ResourceType, note.resourceType, what), note.name, pattern)
    kind, colon, name = (data or b"").decode(errors="replace").partition(":")
    if not colon:
        raise MalformedZnode(f"{what}: {data!r} names no resource")
    return Resource(_named(ResourceType, kind, what), name)
