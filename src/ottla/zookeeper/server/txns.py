"""What a server's log says: each change of the tree or of the sessions, decided already, as frozen values.

A txn carries the outcome of a request, never the request: the number of a sequential node is in its path,
versions are those after the change. Applying one twice is applying it once.
"""

from typing import TypeAlias

from msgspec import Struct

from ottla.zookeeper.ops import Acl

CONTAINER_OWNER = -(2**63)
"""``ephemeral_owner`` of a container node."""
TTL_OWNER = -(2**56)
"""``ephemeral_owner`` of a node with a time to live: these bits, and the time in milliseconds."""


class TxnHeader(Struct, frozen=True, gc=False):
    """Who changed something and when; ``zxid`` counts all changes, refused ones included."""

    session: int
    cxid: int
    zxid: int
    time_ms: int


class CreateTxn(Struct, frozen=True):
    """A node was made. ``parent_cversion`` counts the children ever made below its parent."""

    path: str
    data: bytes | None
    acl: tuple[Acl, ...]
    ephemeral: bool
    parent_cversion: int


class CreateContainerTxn(Struct, frozen=True):
    """A node was made that goes when its last child has gone."""

    path: str
    data: bytes | None
    acl: tuple[Acl, ...]
    parent_cversion: int


class CreateTtlTxn(Struct, frozen=True):
    """A node was made that goes when it was not changed for a while and has no children."""

    path: str
    data: bytes | None
    acl: tuple[Acl, ...]
    parent_cversion: int
    ttl_ms: int


class DeleteTxn(Struct, frozen=True):
    """A node was removed."""

    path: str


class SetDataTxn(Struct, frozen=True):
    """A node got other data; ``version`` is the new one."""

    path: str
    data: bytes | None
    version: int


class SetAclTxn(Struct, frozen=True):
    """A node got another access control list; ``version`` is the new ``aversion``."""

    path: str
    acl: tuple[Acl, ...]
    version: int


class CheckTxn(Struct, frozen=True):
    """A version was checked, and nothing changed."""

    path: str
    version: int


class ErrorTxn(Struct, frozen=True):
    """A write was refused; it used up a zxid."""

    code: int


class MultiTxn(Struct, frozen=True):
    """Several changes under one zxid; where one of them is an ``ErrorTxn``, nothing was changed."""

    txns: "tuple[Txn, ...]"


class CreateSessionTxn(Struct, frozen=True):
    """The header's session began."""

    timeout_ms: int


class CloseSessionTxn(Struct, frozen=True):
    """The header's session ended, and with it these nodes. ZooKeeper 3.5 logged no paths."""

    paths: tuple[str, ...]


Txn: TypeAlias = (
    CreateTxn
    | CreateContainerTxn
    | CreateTtlTxn
    | DeleteTxn
    | SetDataTxn
    | SetAclTxn
    | CheckTxn
    | ErrorTxn
    | MultiTxn
    | CreateSessionTxn
    | CloseSessionTxn
)


class StoredNode(Struct, frozen=True):
    """A node as a snapshot has it.

    ``cversion`` counts the children ever made. What clients see as ``cversion`` counts those removed as well:
    twice this number, less the number of children there are.
    """

    path: str
    data: bytes | None
    acl: tuple[Acl, ...]
    czxid: int
    mzxid: int
    ctime_ms: int
    mtime_ms: int
    version: int
    cversion: int
    aversion: int
    ephemeral_owner: int
    pzxid: int
