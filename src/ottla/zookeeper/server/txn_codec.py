"""Txns as ZooKeeper's log has them: a header and a body in jute, one number for each kind.

Kinds that change the tree alike become one value: ``create2`` is read as ``create``, ``deleteContainer`` as
``delete``, ``reconfig`` as ``setData``. Java's server tells them apart only in its answers.
"""

from collections.abc import Callable
from struct import Struct
from typing import Any, Final

from ottla.zookeeper.jute import INT, Cursor, MalformedReply
from ottla.zookeeper.ops import Acl
from ottla.zookeeper.server.txns import (
    CheckTxn,
    CloseSessionTxn,
    CreateContainerTxn,
    CreateSessionTxn,
    CreateTtlTxn,
    CreateTxn,
    DeleteTxn,
    ErrorTxn,
    MultiTxn,
    SetAclTxn,
    SetDataTxn,
    Txn,
    TxnHeader,
)

_HEADER = Struct(">qiqqi")
_FLAG_AND_INT = Struct(">?i")
_INT_AND_LONG = Struct(">iq")
_pack_int = INT.pack

TXN_BYTES_MIN: Final = _HEADER.size


class MalformedTxn(Exception):
    """These bytes are no txn."""


def encode_txn(header: TxnHeader, txn: Txn) -> bytes:
    """The header and the body."""
    kind, body = _encoded(txn)
    return _HEADER.pack(header.session, header.cxid, header.zxid, header.time_ms, kind) + body


def decode_txn(content: bytes) -> tuple[TxnHeader, Txn, bytes]:
    """The header, the body, and what follows them: a digest of the tree, or nothing."""
    if len(content) < _HEADER.size:
        raise MalformedTxn(f"a header of {len(content)} bytes")
    session, cxid, zxid, time_ms, kind = _HEADER.unpack_from(content)
    cursor = Cursor(content, _HEADER.size)
    txn = _decoded(kind, cursor)
    return TxnHeader(session, cxid, zxid, time_ms), txn, content[cursor.position :]


def buffer(data: bytes | None) -> bytes:
    """Bytes with a count before them; null has -1."""
    return _pack_int(-1) if data is None else _pack_int(len(data)) + data


def text(value: str) -> bytes:
    """UTF-8 with a count before it."""
    encoded = value.encode()
    return _pack_int(len(encoded)) + encoded


def acl_vector(acl: tuple[Acl, ...]) -> bytes:
    """An access control list."""
    entries = [_pack_int(each.permissions) + text(each.scheme) + text(each.identity) for each in acl]
    return _pack_int(len(acl)) + b"".join(entries)


def _encoded(txn: Txn) -> tuple[int, bytes]:
    kind, encode = _ENCODERS[type(txn)]
    return kind, encode(txn)


def _decoded(kind: int, cursor: Cursor) -> Txn:
    decode = _DECODERS.get(kind)
    if decode is None:
        raise MalformedTxn(f"a txn of the unknown kind {kind}")
    try:
        return decode(cursor)
    except MalformedReply as error:
        raise MalformedTxn(f"a txn of kind {kind}: {error}") from None


# ---- bodies out ---------------------------------------------------------------------------------


def _node(txn: CreateTxn | CreateContainerTxn | CreateTtlTxn) -> bytes:
    return text(txn.path) + buffer(txn.data) + acl_vector(txn.acl)


def _create(txn: CreateTxn) -> bytes:
    return _node(txn) + _FLAG_AND_INT.pack(txn.ephemeral, txn.parent_cversion)


def _create_container(txn: CreateContainerTxn) -> bytes:
    return _node(txn) + _pack_int(txn.parent_cversion)


def _create_ttl(txn: CreateTtlTxn) -> bytes:
    return _node(txn) + _INT_AND_LONG.pack(txn.parent_cversion, txn.ttl_ms)


def _delete(txn: DeleteTxn) -> bytes:
    return text(txn.path)


def _set_data(txn: SetDataTxn) -> bytes:
    return text(txn.path) + buffer(txn.data) + _pack_int(txn.version)


def _set_acl(txn: SetAclTxn) -> bytes:
    return text(txn.path) + acl_vector(txn.acl) + _pack_int(txn.version)


def _check(txn: CheckTxn) -> bytes:
    return text(txn.path) + _pack_int(txn.version)


def _multi(txn: MultiTxn) -> bytes:
    parts = [_pack_int(kind) + buffer(body) for kind, body in map(_encoded, txn.txns)]
    return _pack_int(len(parts)) + b"".join(parts)


def _create_session(txn: CreateSessionTxn) -> bytes:
    return _pack_int(txn.timeout_ms)


def _close_session(txn: CloseSessionTxn) -> bytes:
    return _pack_int(len(txn.paths)) + b"".join([text(path) for path in txn.paths])


def _error(txn: ErrorTxn) -> bytes:
    return _pack_int(txn.code)


_ENCODERS: Final[dict[type[Any], tuple[int, Callable[[Any], bytes]]]] = {
    CreateTxn: (1, _create),
    DeleteTxn: (2, _delete),
    SetDataTxn: (5, _set_data),
    SetAclTxn: (7, _set_acl),
    CheckTxn: (13, _check),
    MultiTxn: (14, _multi),
    CreateContainerTxn: (19, _create_container),
    CreateTtlTxn: (21, _create_ttl),
    ErrorTxn: (-1, _error),
    CreateSessionTxn: (-10, _create_session),
    CloseSessionTxn: (-11, _close_session),
}


# ---- bodies in ----------------------------------------------------------------------------------


def _read_create(cursor: Cursor) -> CreateTxn:
    return CreateTxn(cursor.text(), cursor.buffer(), cursor.acl(), cursor.flag(), cursor.int32())


def _read_create_container(cursor: Cursor) -> CreateContainerTxn:
    return CreateContainerTxn(cursor.text(), cursor.buffer(), cursor.acl(), cursor.int32())


def _read_create_ttl(cursor: Cursor) -> CreateTtlTxn:
    return CreateTtlTxn(cursor.text(), cursor.buffer(), cursor.acl(), cursor.int32(), cursor.int64())


def _read_delete(cursor: Cursor) -> DeleteTxn:
    return DeleteTxn(cursor.text())


def _read_set_data(cursor: Cursor) -> SetDataTxn:
    return SetDataTxn(cursor.text(), cursor.buffer(), cursor.int32())


def _read_set_acl(cursor: Cursor) -> SetAclTxn:
    return SetAclTxn(cursor.text(), cursor.acl(), cursor.int32())


def _read_check(cursor: Cursor) -> CheckTxn:
    return CheckTxn(cursor.text(), cursor.int32())


def _read_multi(cursor: Cursor) -> MultiTxn:
    return MultiTxn(tuple([_read_part(cursor) for _ in range(cursor.count(8))]))


def _read_part(cursor: Cursor) -> Txn:
    kind, body = cursor.int32(), Cursor(cursor.buffer() or b"")
    if kind not in _PARTS:
        raise MalformedTxn(f"a txn of kind {kind} inside a multi")
    txn = _decoded(kind, body)
    if body.left:
        raise MalformedTxn(f"{body.left} bytes behind a txn of kind {kind} inside a multi")
    return txn


def _read_create_session(cursor: Cursor) -> CreateSessionTxn:
    return CreateSessionTxn(cursor.int32())


def _read_close_session(cursor: Cursor) -> CloseSessionTxn:
    return CloseSessionTxn(cursor.names() if cursor.left else ())


def _read_error(cursor: Cursor) -> ErrorTxn:
    return ErrorTxn(cursor.int32())


_DECODERS: Final[dict[int, Callable[[Cursor], Txn]]] = {
    1: _read_create,
    2: _read_delete,
    5: _read_set_data,
    7: _read_set_acl,
    13: _read_check,
    14: _read_multi,
    15: _read_create,
    16: _read_set_data,
    19: _read_create_container,
    20: _read_delete,
    21: _read_create_ttl,
    -1: _read_error,
    -10: _read_create_session,
    -11: _read_close_session,
}
_PARTS: Final = frozenset({-1, 1, 2, 5, 7, 13, 15, 19, 20, 21})
"""What a multi may hold. Another multi is not among it, so reading never goes deeper than one step."""
