"""The server's half of the protocol as bytes: requests in, answers out.

Writes are read into tuples, whose first item is the number of the request. A request whose body cannot be
read raises ``MalformedRequest`` or ``struct.error``.
"""

from itertools import chain
from struct import Struct
from typing import Any, Final, NamedTuple

from ottla.model.errors import MalformedRequest
from ottla.zookeeper.jute import INT, LONG, Cursor
from ottla.zookeeper.ops import OPEN, Acl

CREATE: Final = 1
DELETE: Final = 2
EXISTS: Final = 3
GET_DATA: Final = 4
SET_DATA: Final = 5
GET_ACL: Final = 6
SET_ACL: Final = 7
GET_CHILDREN: Final = 8
SYNC: Final = 9
PING: Final = 11
GET_CHILDREN_2: Final = 12
CHECK: Final = 13
MULTI: Final = 14
CREATE_2: Final = 15
RECONFIG: Final = 16
CHECK_WATCHES: Final = 17
REMOVE_WATCHES: Final = 18
CREATE_CONTAINER: Final = 19
DELETE_CONTAINER: Final = 20
CREATE_TTL: Final = 21
MULTI_READ: Final = 22
AUTH: Final = 100
SET_WATCHES: Final = 101
SASL: Final = 102
GET_EPHEMERALS: Final = 103
GET_ALL_CHILDREN_NUMBER: Final = 104
SET_WATCHES_2: Final = 105
ADD_WATCH: Final = 106
WHO_AM_I: Final = 107
CLOSE: Final = -11

REQUEST_HEADER: Final = Struct(">ii")
BODY: Final = REQUEST_HEADER.size
REPLY: Final = Struct(">iiqi")
"""The length of the frame, and the header."""
REPLY_HEADER_BYTES: Final = 16
EVENT: Final = Struct(">iiqiiii")
CONNECT: Final = Struct(">iqiqi")
MULTI_HEADER: Final = Struct(">i?i")
MULTI_END: Final = MULTI_HEADER.pack(-1, True, -1)
MULTI_ERROR: Final = Struct(">i?ii")
CONNECTED: Final = 3

_OPEN_BYTES: Final = b"\0\0\0\1\0\0\0\x1f\0\0\0\5world\0\0\0\6anyone"
_unpack_int = INT.unpack_from
_pack_int = INT.pack


class ConnectRequest(NamedTuple):
    """The first frame of a connection."""

    last_zxid: int
    timeout_ms: int
    session: int
    password: bytes
    has_read_only: bool


# ---- requests -------------------------------------------------------------------------------------------


def read_connect(frame: bytes) -> ConnectRequest:
    """The client's first frame."""
    _, last_zxid, timeout_ms, session, _ = CONNECT.unpack_from(frame)
    cursor = Cursor(frame, CONNECT.size - 4)
    password = cursor.buffer() or b""
    return ConnectRequest(last_zxid, timeout_ms, session, password, cursor.left > 0)


def read_text(frame: bytes, position: int) -> tuple[str | None, int]:
    """A text, ``None`` for null, and where it ends. What is not UTF-8 is replaced, as Java does."""
    (size,) = _unpack_int(frame, position)
    position += 4
    if size == -1:
        return None, position
    end = position + size
    if size < 0 or end > len(frame):
        raise MalformedRequest(f"a text of {size} bytes is announced in a frame of {len(frame)}")
    return frame[position:end].decode("utf-8", "replace"), end


def read_path(frame: bytes, position: int) -> tuple[str, int]:
    """A path, which must not be null."""
    path, end = read_text(frame, position)
    if path is None:
        raise MalformedRequest("a path is null")
    return path, end


def read_buffer(frame: bytes, position: int) -> tuple[bytes | None, int]:
    """Bytes, ``None`` for null, and where they end."""
    (size,) = _unpack_int(frame, position)
    position += 4
    if size == -1:
        return None, position
    end = position + size
    if size < 0 or end > len(frame):
        raise MalformedRequest(f"a buffer of {size} bytes is announced in a frame of {len(frame)}")
    return frame[position:end], end


def read_texts(frame: bytes, position: int) -> tuple[list[str], int]:
    """A vector of texts."""
    count = Cursor(frame, position).count(4)
    position += 4
    texts = []
    for _ in range(count):
        text, position = read_path(frame, position)
        texts.append(text)
    return texts, position


class NullAcl(MalformedRequest):
    """A part of a multi has no list. Java stumbles over it before the request gets a transaction id."""


def read_acl(frame: bytes, position: int) -> tuple[tuple[Acl, ...] | None, int]:
    """An access control list, ``None`` for null, and where it ends."""
    if frame.startswith(_OPEN_BYTES, position):
        return OPEN, position + len(_OPEN_BYTES)
    if _unpack_int(frame, position)[0] == -1:
        return None, position + 4
    count = Cursor(frame, position).count(12)
    position += 4
    entries = []
    for _ in range(count):
        (permissions,) = _unpack_int(frame, position)
        scheme, position = read_text(frame, position + 4)
        identity, position = read_text(frame, position)
        entries.append(Acl(permissions, scheme or "", identity or ""))
    return tuple(entries), position


def _create(op: int, frame: bytes, position: int) -> tuple[tuple[Any, ...], int]:
    path, position = read_text(frame, position)
    data, position = read_buffer(frame, position)
    acl, position = read_acl(frame, position)
    (flags,) = _unpack_int(frame, position)
    position += 4
    ttl_ms = -1
    if op == CREATE_TTL:
        (ttl_ms,) = LONG.unpack_from(frame, position)
        position += 8
    return (op, path, data, acl, flags, ttl_ms), position


def _delete(op: int, frame: bytes, position: int) -> tuple[tuple[Any, ...], int]:
    path, position = read_text(frame, position)
    return (op, path, _unpack_int(frame, position)[0]), position + 4


def _delete_container(op: int, frame: bytes, position: int) -> tuple[tuple[Any, ...], int]:
    path, position = read_text(frame, position)
    return (op, path), position


def _set_data(op: int, frame: bytes, position: int) -> tuple[tuple[Any, ...], int]:
    path, position = read_text(frame, position)
    data, position = read_buffer(frame, position)
    return (op, path, data, _unpack_int(frame, position)[0]), position + 4


def _set_acl(op: int, frame: bytes, position: int) -> tuple[tuple[Any, ...], int]:
    path, position = read_text(frame, position)
    acl, position = read_acl(frame, position)
    return (op, path, acl, _unpack_int(frame, position)[0]), position + 4


WRITES: Final = {
    CREATE: _create,
    CREATE_2: _create,
    CREATE_CONTAINER: _create,
    CREATE_TTL: _create,
    DELETE: _delete,
    DELETE_CONTAINER: _delete_container,
    SET_DATA: _set_data,
    SET_ACL: _set_acl,
}
"""How the body of each write is read."""
_PARTS: Final = {
    CREATE: _create,
    CREATE_2: _create,
    CREATE_CONTAINER: _create,
    CREATE_TTL: _create,
    DELETE: _delete,
    SET_DATA: _set_data,
    CHECK: _delete,
}


def read_multi(frame: bytes, position: int) -> list[tuple[Any, ...]]:
    """The parts of a multi."""
    parts: list[tuple[Any, ...]] = []
    header = MULTI_HEADER.unpack_from
    while True:
        op, is_end, _ = header(frame, position)
        if is_end:
            return parts
        read = _PARTS.get(op)
        if read is None:
            raise MalformedRequest(f"a multi cannot have a part of kind {op}")
        part, position = read(op, frame, position + 9)
        if read is _create:
            part = _created_by_flags(*part)
        parts.append(part)


def _created_by_flags(
    op: int, path: str | None, data: bytes | None, acl: tuple[Acl, ...] | None, flags: int, ttl_ms: int
) -> tuple[Any, ...]:
    """Inside a multi the flags say what is made, and the number only what is answered."""
    if op == CREATE_TTL:
        if flags in (5, 6):
            return op, path, data, acl, flags, ttl_ms
        op = CREATE
    elif not 0 <= flags <= 4 and not (acl is None and flags in (5, 6)):
        raise MalformedRequest(f"a node cannot be made with the flags {flags}")
    elif acl is None:
        raise NullAcl("a node cannot be made without an access control list")
    return CREATE_CONTAINER if flags == 4 else op, path, data, acl, flags, -1


# ---- answers --------------------------------------------------------------------------------------------


def connect_reply(timeout_ms: int, session: int, password: bytes, has_read_only: bool) -> bytes:
    """The answer to a connection's first frame."""
    body = INT.pack(0) + INT.pack(timeout_ms) + LONG.pack(session) + INT.pack(len(password)) + password
    if has_read_only:
        body += b"\0"
    return INT.pack(len(body)) + body


def watch_event(kind: int, path: bytes, zxid: int) -> bytes:
    """A notification."""
    size = len(path)
    return EVENT.pack(28 + size, -1, zxid, 0, kind, CONNECTED, size) + path


def text(value: str) -> bytes:
    """A text with its length."""
    encoded = value.encode("utf-8", "replace")
    return _pack_int(len(encoded)) + encoded


def buffer(data: bytes | None) -> bytes:
    """Bytes with their length."""
    return b"\xff\xff\xff\xff" if data is None else _pack_int(len(data)) + data


def texts(values: Any) -> bytes:
    """A vector of texts."""
    encoded = [value.encode("utf-8", "replace") for value in values]
    pairs = zip(map(_pack_int, map(len, encoded)), encoded, strict=True)
    return _pack_int(len(encoded)) + b"".join(chain.from_iterable(pairs))


def acl_bytes(acl: tuple[Acl, ...]) -> bytes:
    """An access control list."""
    parts = [_pack_int(e.permissions) + text(e.scheme) + text(e.identity) for e in acl]
    return _pack_int(len(acl)) + b"".join(parts)
