"""ZooKeeper's messages as bytes: requests out, replies in, for protocol version 0."""

from collections.abc import Callable
from enum import IntEnum
from struct import Struct
from struct import error as StructError
from typing import Any, Final

from ottla.model.errors import InvariantBroken
from ottla.zookeeper.jute import INT, STAT, STAT_SIZE, Cursor, MalformedReply
from ottla.zookeeper.ops import (
    ANY_VERSION,
    Acl,
    AclFound,
    AclSet,
    Check,
    Checked,
    Children,
    Create,
    Created,
    Data,
    DataSet,
    Delete,
    Deleted,
    Exists,
    Failed,
    Found,
    GetAcl,
    GetChildren,
    GetData,
    Multi,
    MultiDone,
    MultiFailed,
    MultiRead,
    Op,
    ReadResult,
    Result,
    SetAcl,
    SetData,
    Stat,
    Sync,
    Synced,
    WatchEvent,
    WatchKind,
    WriteOp,
    WriteResult,
    ZkCode,
)


class OpCode(IntEnum):
    """The numbers of requests."""

    DELETE = 2
    EXISTS = 3
    GET_DATA = 4
    SET_DATA = 5
    GET_ACL = 6
    SET_ACL = 7
    GET_CHILDREN = 8
    SYNC = 9
    PING = 11
    GET_CHILDREN_2 = 12
    CHECK = 13
    MULTI = 14
    CREATE_2 = 15
    MULTI_READ = 22
    AUTH = 100
    SET_WATCHES = 101
    CLOSE = -11


XID_NOTIFICATION: Final = -1
XID_PING: Final = -2
XID_AUTH: Final = -4
XID_SET_WATCHES: Final = -8

_HEADER = Struct(">iii")
_REPLY_HEADER = Struct(">iqi")
_CONNECT = Struct(">iqiqi")
_MULTI_HEADER = Struct(">i?i")
_MULTI_DATA = Struct(">i?ii")
_MULTI_END = _MULTI_HEADER.pack(-1, True, -1)
REPLY_HEADER_SIZE: Final = _REPLY_HEADER.size

CODES: Final[dict[type[Any], int]] = {
    Create: OpCode.CREATE_2,
    Delete: OpCode.DELETE,
    SetData: OpCode.SET_DATA,
    Check: OpCode.MULTI,  # the server knows it only inside a multi
    GetData: OpCode.GET_DATA,
    Exists: OpCode.EXISTS,
    GetChildren: OpCode.GET_CHILDREN_2,
    GetAcl: OpCode.GET_ACL,
    SetAcl: OpCode.SET_ACL,
    Sync: OpCode.SYNC,
    Multi: OpCode.MULTI,
    MultiRead: OpCode.MULTI_READ,
}
READS: Final = frozenset({GetData, Exists, GetChildren, GetAcl, Sync, MultiRead})
"""Operations that change nothing and may be repeated."""

_pack_int = INT.pack


class BadArguments(Exception):
    """The operation cannot be put into ZooKeeper's form; it never leaves this module's callers."""


# ---- requests -----------------------------------------------------------------------------------


def frame_request(xid: int, code: int, body: bytes) -> bytes:
    """One request with its length and header."""
    return _HEADER.pack(len(body) + 8, xid, code) + body


def frame_connect(last_zxid: int, timeout_ms: int, session_id: int, password: bytes) -> bytes:
    """The first frame on a connection: a new session if the id is 0, else the resumption of one."""
    body = _CONNECT.pack(0, last_zxid, timeout_ms, session_id, len(password)) + password + b"\0"
    return _pack_int(len(body)) + body


def frame_ping() -> bytes:
    """A sign of life."""
    return _HEADER.pack(8, XID_PING, OpCode.PING)


def frame_auth(scheme: str, credential: bytes) -> bytes:
    """A login, answered by a header alone."""
    body = _pack_int(0) + _text(scheme) + _pack_int(len(credential)) + credential
    return frame_request(XID_AUTH, OpCode.AUTH, body)


def encode_op(op: Op, chroot: bytes = b"") -> bytes:
    """The body of a request; ``chroot`` is put before every path."""
    if type(op) is MultiRead:
        return _multi_read(op, chroot)
    if type(op) is Multi:
        return _multi(op.ops, chroot)
    if type(op) is Check:
        return _multi((op,), chroot)
    return _BODIES[type(op)](op, chroot)


def _path(path: str, chroot: bytes) -> bytes:
    if path[:1] != "/":
        raise BadArguments(f"{path!r} does not begin with a slash")
    try:
        encoded = path.encode()
    except UnicodeEncodeError as problem:
        raise BadArguments(f"{path!r}: {problem}") from None
    if chroot:
        encoded = chroot + encoded if len(encoded) > 1 else chroot
    return _pack_int(len(encoded)) + encoded


def _text(text: str) -> bytes:
    encoded = text.encode()
    return _pack_int(len(encoded)) + encoded


def _buffer(data: bytes | None) -> bytes:
    return b"\xff\xff\xff\xff" if data is None else _pack_int(len(data)) + data


def _version(version: int) -> bytes:
    if version < 0 and version is not ANY_VERSION:
        raise InvariantBroken(f"version {version} is not a version: use ANY_VERSION for any")
    return _pack_int(version)


def _acl(acl: tuple[Acl, ...]) -> bytes:
    entries = [_pack_int(e.permissions) + _text(e.scheme) + _text(e.identity) for e in acl]
    return _pack_int(len(acl)) + b"".join(entries)


def _create(op: Create, chroot: bytes) -> bytes:
    flags = (1 if op.ephemeral else 0) | (2 if op.sequential else 0)
    return _path(op.path, chroot) + _buffer(op.data) + _acl(op.acl) + _pack_int(flags)


def _delete(op: Delete | Check, chroot: bytes) -> bytes:
    return _path(op.path, chroot) + _version(op.version)


def _set_data(op: SetData, chroot: bytes) -> bytes:
    return _path(op.path, chroot) + _buffer(op.data) + _version(op.version)


def _read(op: GetData | Exists | GetChildren, chroot: bytes) -> bytes:
    return _path(op.path, chroot) + (b"\1" if op.watch else b"\0")


def _path_alone(op: GetAcl | Sync, chroot: bytes) -> bytes:
    return _path(op.path, chroot)


def _set_acl(op: SetAcl, chroot: bytes) -> bytes:
    return _path(op.path, chroot) + _acl(op.acl) + _version(op.version)


_BODIES: Final[dict[type[Any], Callable[[Any, bytes], bytes]]] = {
    Create: _create,
    Delete: _delete,
    SetData: _set_data,
    GetData: _read,
    Exists: _read,
    GetChildren: _read,
    GetAcl: _path_alone,
    SetAcl: _set_acl,
    Sync: _path_alone,
}
_MULTI_PART: Final[dict[type[Any], tuple[bytes, Callable[[Any, bytes], bytes]]]] = {
    Create: (_MULTI_HEADER.pack(OpCode.CREATE_2, False, -1), _create),
    Delete: (_MULTI_HEADER.pack(OpCode.DELETE, False, -1), _delete),
    SetData: (_MULTI_HEADER.pack(OpCode.SET_DATA, False, -1), _set_data),
    Check: (_MULTI_HEADER.pack(OpCode.CHECK, False, -1), _delete),
}
_GET_DATA_PART: Final = _MULTI_HEADER.pack(OpCode.GET_DATA, False, -1)
_GET_CHILDREN_PART: Final = _MULTI_HEADER.pack(OpCode.GET_CHILDREN, False, -1)


def _multi(ops: tuple[WriteOp, ...], chroot: bytes) -> bytes:
    parts: list[bytes] = []
    for part in ops:
        header, encode = _MULTI_PART[type(part)]
        parts += (header, encode(part, chroot))
    parts.append(_MULTI_END)
    return b"".join(parts)


def _multi_read(op: MultiRead, chroot: bytes) -> bytes:
    parts: list[bytes] = []
    for part in op.ops:
        if part.watch:
            raise InvariantBroken("ZooKeeper arms no watches in a MultiRead")
        header = _GET_DATA_PART if type(part) is GetData else _GET_CHILDREN_PART
        parts += (header, _path(part.path, chroot), b"\0")
    parts.append(_MULTI_END)
    return b"".join(parts)


def request_size(op: WriteOp | GetData | GetChildren) -> int:
    """About how many bytes an operation takes inside a ``Multi`` or ``MultiRead``."""
    size = 24 + len(op.path.encode(errors="replace"))
    if isinstance(op, Create | SetData):
        size += len(op.data or b"")
    if isinstance(op, Create):
        size += sum(12 + len(entry.scheme) + len(entry.identity) for entry in op.acl)
    return size


# ---- replies ------------------------------------------------------------------------------------


def read_connect_reply(frame: bytes) -> tuple[int, int, bytes, bool]:
    """Time-out, session id (0: expired), password, and whether the server is read-only."""
    cursor = Cursor(frame)
    cursor.int32()
    timeout_ms, session_id, password = cursor.int32(), cursor.int64(), cursor.buffer() or b""
    is_read_only = cursor.flag() if cursor.left else False
    return timeout_ms, session_id, password, is_read_only


def read_header(frame: bytes) -> tuple[int, int, int]:
    """Xid, zxid and result code of a reply."""
    try:
        return _REPLY_HEADER.unpack_from(frame)
    except StructError as problem:
        raise MalformedReply(f"a header is cut off: {problem}") from None


def read_watch_event(frame: bytes, chroot: str) -> WatchEvent | None:
    """A notification; ``None`` if it does not concern a node below the chroot."""
    cursor = Cursor(frame, REPLY_HEADER_SIZE)
    kind = cursor.int32()
    cursor.int32()
    path = cursor.text()
    if kind not in (1, 2, 3, 4):
        return None
    if chroot:
        if path != chroot and not path.startswith(chroot + "/"):
            return None
        path = path[len(chroot) :] or "/"
    return WatchEvent(WatchKind(kind), path)


def read_result(op: Op, code: int, frame: bytes, chroot: str) -> Result:
    """The outcome of an operation, from the reply's code and what follows its header."""
    if code != 0:
        return Failed(ZkCode(code))
    try:
        if type(op) is MultiRead:
            return _read_multi_read(frame, len(op.ops))
        return _RESULTS[type(op)](Cursor(frame, REPLY_HEADER_SIZE), op, chroot)
    except StructError as problem:
        raise MalformedReply(f"a reply is cut off: {problem}") from None


def _created(cursor: Cursor, op: object, chroot: str) -> Created:
    path = cursor.text()
    if not path.startswith(chroot):
        raise MalformedReply(f"{path!r} was made outside of {chroot}")
    return Created(path[len(chroot) :] or "/", cursor.stat())


def _synced(cursor: Cursor, op: Sync, chroot: str) -> Synced:
    return Synced(op.path)


def _checked(cursor: Cursor, op: Check, chroot: str) -> Checked | Failed:
    outcome = _multi_done(cursor, Multi((op,)), chroot)
    return Failed(outcome.code) if isinstance(outcome, MultiFailed) else Checked()


def _multi_done(cursor: Cursor, op: Multi, chroot: str) -> MultiDone | MultiFailed:
    results: list[WriteResult] = []
    codes: list[Failed] = []
    frame = cursor.frame
    while True:
        kind, is_end, _ = _MULTI_HEADER.unpack_from(frame, cursor.position)
        cursor.position += 9
        if is_end:
            break
        if kind == OpCode.SET_DATA:
            results.append(DataSet(cursor.stat()))
        elif kind == OpCode.CHECK:
            results.append(Checked())
        elif kind == OpCode.CREATE_2:
            results.append(_created(cursor, op, chroot))
        elif kind == OpCode.DELETE:
            results.append(Deleted())
        elif kind == -1:
            codes.append(Failed(ZkCode(cursor.int32())))
        else:
            raise MalformedReply(f"a multi has a result of kind {kind}")
    if len(results) + len(codes) != len(op.ops) or (codes and results):
        raise MalformedReply(f"a multi of {len(op.ops)} has {len(results)} results, {len(codes)} errors")
    if not codes:
        return MultiDone(tuple(results))
    failed = (ZkCode.OK, ZkCode.RUNTIME_INCONSISTENCY)
    position = next((n for n, result in enumerate(codes) if result.code not in failed), 0)
    return MultiFailed(position, codes[position].code, tuple(codes))


def _read_multi_read(frame: bytes, count: int) -> MultiDone:
    """One pass over many results: at a failover this is most of the work."""
    results: list[ReadResult] = []
    append, header, stat = results.append, _MULTI_DATA.unpack_from, STAT.unpack_from
    position, end = REPLY_HEADER_SIZE, len(frame)
    for _ in range(count):
        kind, is_end, _, size = header(frame, position)
        position += 13
        if kind == 4:
            stop = position + size
            if size < -1 or stop > end:
                raise MalformedReply(f"a buffer of {size} bytes is announced in a frame of {end}")
            if size == -1:
                data, stop = None, position
            else:
                data = frame[position:stop]
            append(Data(data, Stat(*stat(frame, stop))))
            position = stop + STAT_SIZE
        elif kind == 8:
            cursor = Cursor(frame, position - 4)
            append(Children(cursor.names(), None))
            position = cursor.position
        elif kind == -1 and not is_end:
            append(Failed(ZkCode(size)))
        else:
            raise MalformedReply(f"a multi-read has a result of kind {kind}")
    if frame[position:] != _MULTI_END:
        raise MalformedReply(f"a multi-read of {count} does not end after its last result")
    return MultiDone(tuple(results))


_RESULTS: Final[dict[type[Any], Callable[[Cursor, Any, str], Result]]] = {
    Create: _created,
    Delete: lambda cursor, op, chroot: Deleted(),
    SetData: lambda cursor, op, chroot: DataSet(cursor.stat()),
    Check: _checked,
    GetData: lambda cursor, op, chroot: Data(cursor.buffer(), cursor.stat()),
    Exists: lambda cursor, op, chroot: Found(cursor.stat()),
    GetChildren: lambda cursor, op, chroot: Children(cursor.names(), cursor.stat()),
    GetAcl: lambda cursor, op, chroot: AclFound(cursor.acl(), cursor.stat()),
    SetAcl: lambda cursor, op, chroot: AclSet(cursor.stat()),
    Sync: _synced,
    Multi: _multi_done,
}
