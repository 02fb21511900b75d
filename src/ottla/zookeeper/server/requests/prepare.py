"""Checks a write against the tree and says which transaction it becomes, or why it is refused.

The order of the checks is that of Java's server: where several apply, clients get to know the same one.
"""

import re
from collections.abc import Callable
from typing import Any, Final

from ottla.zookeeper.ops import Acl, ZkCode
from ottla.zookeeper.server.requests import access, codec
from ottla.zookeeper.server.requests.access import Identity, may, resolve
from ottla.zookeeper.server.tree import SPECIAL_PATHS, TTL_MAX_MS, Node, Tree, is_session
from ottla.zookeeper.server.txns import (
    CheckTxn,
    CreateContainerTxn,
    CreateTtlTxn,
    CreateTxn,
    DeleteTxn,
    SetAclTxn,
    SetDataTxn,
    Txn,
)

EPHEMERAL: Final = (1, 3)
SEQUENTIAL: Final = (2, 3, 6)
WITH_TTL: Final = (5, 6)
FLAGS_MAX: Final = 6

_ODD: Final = re.compile(
    "[\0-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff\U00010000-\U0010ffff]|//|/\\.\\.?(?:/|$)"
)


class Refused(Exception):
    """The request cannot be done; nothing was changed."""

    def __init__(self, code: ZkCode) -> None:
        super().__init__(code)
        self.code = code


def is_valid_path(path: str) -> bool:
    """Whether a node may have this path."""
    if path == "/":
        return True
    return path[:1] == "/" and path[-1] != "/" and _ODD.search(path) is None


def prepare(tree: Tree, identities: list[Identity], request: tuple[Any, ...]) -> Txn:
    """The transaction that does what is asked; ``Refused`` if that cannot be done."""
    if request[1] is None:
        raise Refused(ZkCode.MARSHALLING_ERROR)
    return _PREPARE[request[0]](tree, identities, request)


def _node(tree: Tree, path: str) -> Node:
    node = tree.nodes.get(path)
    if node is None:
        raise Refused(ZkCode.NO_NODE)
    return node


def _require(acl: tuple[Acl, ...], permission: int, identities: list[Identity]) -> None:
    if not may(acl, permission, identities):
        raise Refused(ZkCode.NO_AUTH)


def _next_version(current: int, expected: int) -> int:
    if expected not in (-1, current):
        raise Refused(ZkCode.BAD_VERSION)
    return current + 1


def _create(tree: Tree, identities: list[Identity], request: tuple[Any, ...]) -> Txn:
    op, path, data, acl, flags, ttl_ms = request
    if not 0 <= flags <= FLAGS_MAX:
        raise Refused(ZkCode.BAD_ARGUMENTS)
    if not (0 < ttl_ms <= TTL_MAX_MS) if flags in WITH_TTL else ttl_ms >= 0 or op == codec.CREATE_TTL:
        raise Refused(ZkCode.BAD_ARGUMENTS)  # the last is what Java's server dies of
    parent_path, slash, _ = path.rpartition("/")
    if not slash or "\0" in path:
        raise Refused(ZkCode.BAD_ARGUMENTS)
    resolved = resolve(acl, identities)
    if resolved is None:
        raise Refused(ZkCode.INVALID_ACL)
    parent = _node(tree, parent_path)
    _require(parent.acl, access.CREATE, identities)
    if flags in SEQUENTIAL:
        path = f"{path}{parent.cversion:010d}"
    if not is_valid_path(path):
        raise Refused(ZkCode.BAD_ARGUMENTS)
    if path in tree.nodes:
        raise Refused(ZkCode.NODE_EXISTS)
    if parent.owner and is_session(parent.owner):
        raise Refused(ZkCode.NO_CHILDREN_FOR_EPHEMERALS)
    cversion = parent.cversion + 1
    if op == codec.CREATE_CONTAINER:
        return CreateContainerTxn(path, data, resolved, cversion)
    if op == codec.CREATE_TTL:
        return CreateTtlTxn(path, data, resolved, cversion, ttl_ms)
    return CreateTxn(path, data, resolved, flags in EPHEMERAL, cversion)


def _parent_of_deleted(path: str) -> str:
    parent_path, slash, _ = path.rpartition("/")
    if not slash or "\0" in path or path in SPECIAL_PATHS:
        raise Refused(ZkCode.BAD_ARGUMENTS)
    return parent_path


def _delete(tree: Tree, identities: list[Identity], request: tuple[Any, ...]) -> Txn:
    _, path, version = request
    parent = _node(tree, _parent_of_deleted(path))
    _require(parent.acl, access.DELETE, identities)
    node = _node(tree, path)
    _next_version(node.version, version)
    if node.children:
        raise Refused(ZkCode.NOT_EMPTY)
    return DeleteTxn(path)


def _delete_container(tree: Tree, identities: list[Identity], request: tuple[Any, ...]) -> Txn:
    _, path = request
    _parent_of_deleted(path)
    node = _node(tree, path)
    if node.children:
        raise Refused(ZkCode.NOT_EMPTY)
    if is_session(node.owner):
        raise Refused(ZkCode.BAD_VERSION)
    return DeleteTxn(path)


def _set_data(tree: Tree, identities: list[Identity], request: tuple[Any, ...]) -> Txn:
    _, path, data, version = request
    node = tree.nodes.get(path)
    if node is None or not path:
        raise Refused(ZkCode.NO_NODE if is_valid_path(path) else ZkCode.BAD_ARGUMENTS)
    _require(node.acl, access.WRITE, identities)
    return SetDataTxn(path, data, _next_version(node.version, version))


def _set_acl(tree: Tree, identities: list[Identity], request: tuple[Any, ...]) -> Txn:
    _, path, acl, version = request
    if not is_valid_path(path):
        raise Refused(ZkCode.BAD_ARGUMENTS)
    resolved = resolve(acl, identities)
    if resolved is None:
        raise Refused(ZkCode.INVALID_ACL)
    node = _node(tree, path)
    _require(node.acl, access.ADMIN, identities)
    return SetAclTxn(path, resolved, _next_version(node.aversion, version))


def _check(tree: Tree, identities: list[Identity], request: tuple[Any, ...]) -> Txn:
    _, path, version = request
    node = tree.nodes.get(path)
    if node is None or not path:
        raise Refused(ZkCode.NO_NODE if is_valid_path(path) else ZkCode.BAD_ARGUMENTS)
    _require(node.acl, access.READ, identities)
    return CheckTxn(path, _next_version(node.version, version))


_PREPARE: Final[dict[int, Callable[[Tree, list[Identity], tuple[Any, ...]], Txn]]] = {
    codec.CREATE: _create,
    codec.CREATE_2: _create,
    codec.CREATE_CONTAINER: _create,
    codec.CREATE_TTL: _create,
    codec.DELETE: _delete,
    codec.DELETE_CONTAINER: _delete_container,
    codec.SET_DATA: _set_data,
    codec.SET_ACL: _set_acl,
    codec.CHECK: _check,
}
