"""What may be asked of ZooKeeper, and every answer it may give, as frozen values.

The values are ``msgspec`` structs: frozen and typed like a frozen dataclass, but ten times cheaper to
build, and a failover builds a hundred thousand of them.
"""

import base64
import hashlib
from enum import IntEnum
from typing import Final, TypeAlias

from msgspec import Struct


class ZkCode(IntEnum):
    """ZooKeeper's result codes; a number that is not listed keeps its value."""

    OK = 0
    SYSTEM_ERROR = -1
    RUNTIME_INCONSISTENCY = -2
    DATA_INCONSISTENCY = -3
    CONNECTION_LOSS = -4
    MARSHALLING_ERROR = -5
    UNIMPLEMENTED = -6
    OPERATION_TIMEOUT = -7
    BAD_ARGUMENTS = -8
    NEW_CONFIG_NO_QUORUM = -13
    RECONFIG_IN_PROGRESS = -14
    API_ERROR = -100
    NO_NODE = -101
    NO_AUTH = -102
    BAD_VERSION = -103
    NO_CHILDREN_FOR_EPHEMERALS = -108
    NODE_EXISTS = -110
    NOT_EMPTY = -111
    SESSION_EXPIRED = -112
    INVALID_CALLBACK = -113
    INVALID_ACL = -114
    AUTH_FAILED = -115
    SESSION_MOVED = -118
    NOT_READ_ONLY = -119
    EPHEMERAL_ON_LOCAL_SESSION = -120
    NO_WATCHER = -121
    REQUEST_TIMEOUT = -122
    RECONFIG_DISABLED = -123
    SESSION_CLOSED_REQUIRE_SASL_AUTH = -124
    QUOTA_EXCEEDED = -125
    THROTTLED_OP = -127

    @classmethod
    def _missing_(cls, value: object) -> "ZkCode | None":
        if not isinstance(value, int):
            return None
        unlisted = int.__new__(cls, value)
        unlisted._name_ = f"CODE_{value}"
        unlisted._value_ = value
        return unlisted


class _AnyVersion(IntEnum):
    ANY_VERSION = -1


ANY_VERSION: Final = _AnyVersion.ANY_VERSION
"""Write whatever the version is. A plain -1, which elsewhere means "not known", is refused."""


class Acl(Struct, frozen=True):
    """One entry of an access control list."""

    permissions: int
    scheme: str
    identity: str


OPEN: Final = (Acl(31, "world", "anyone"),)
"""Everybody may do everything: what Kafka uses unless ``zookeeper.set.acl`` is on."""
READ_BY_ALL: Final = (Acl(1, "world", "anyone"),)
CREATOR_ALL: Final = (Acl(31, "auth", ""),)
"""Whoever is authenticated on this session may do everything."""


def digest_identity(user: str, password: str) -> str:
    """The identity under which ZooKeeper knows a user of the ``digest`` scheme."""
    digest = hashlib.sha1(f"{user}:{password}".encode(), usedforsecurity=False).digest()
    return f"{user}:{base64.b64encode(digest).decode('ascii')}"


class Stat(Struct, frozen=True, gc=False):
    """What ZooKeeper knows of a node besides its data."""

    czxid: int
    mzxid: int
    ctime_ms: int
    mtime_ms: int
    version: int
    cversion: int
    aversion: int
    ephemeral_owner: int
    data_length: int
    num_children: int
    pzxid: int


# ---- operations ---------------------------------------------------------------------------------


class Create(Struct, frozen=True):
    """Make a node; a sequential one gets ten digits appended to its path."""

    path: str
    data: bytes | None = None
    ephemeral: bool = False
    sequential: bool = False
    acl: tuple[Acl, ...] = OPEN


class Delete(Struct, frozen=True):
    """Remove a node that has no children."""

    path: str
    version: int


class SetData(Struct, frozen=True):
    """Replace a node's data if it still has that version."""

    path: str
    data: bytes | None
    version: int


class Check(Struct, frozen=True):
    """Succeed only while that node has that version; of use in a ``Multi``."""

    path: str
    version: int


class GetData(Struct, frozen=True):
    """Read a node; the watch is armed only if the node is there."""

    path: str
    watch: bool = False


class Exists(Struct, frozen=True):
    """Ask whether a node is there; the watch is armed in both cases."""

    path: str
    watch: bool = False


class GetChildren(Struct, frozen=True):
    """List the names of a node's children, in any order."""

    path: str
    watch: bool = False


class GetAcl(Struct, frozen=True):
    """Read a node's access control list."""

    path: str


class SetAcl(Struct, frozen=True):
    """Replace a node's access control list; ``version`` is the stat's ``aversion``."""

    path: str
    acl: tuple[Acl, ...]
    version: int


class Sync(Struct, frozen=True):
    """Let this server catch up with the leader before it answers what follows."""

    path: str


WriteOp: TypeAlias = Create | Delete | SetData | Check
ReadOp: TypeAlias = GetData | GetChildren


class Multi(Struct, frozen=True):
    """Do all of these or none of them."""

    ops: tuple[WriteOp, ...]


class MultiRead(Struct, frozen=True):
    """Many reads in one request; each has its own result. ZooKeeper arms no watches here."""

    ops: tuple[ReadOp, ...]


Op: TypeAlias = (
    Create
    | Delete
    | SetData
    | Check
    | GetData
    | Exists
    | GetChildren
    | GetAcl
    | SetAcl
    | Sync
    | Multi
    | MultiRead
)


# ---- results ------------------------------------------------------------------------------------


class Created(Struct, frozen=True, gc=False):
    """The node was made, under this path (with its number, if it is sequential)."""

    path: str
    stat: Stat


class Deleted(Struct, frozen=True, gc=False):
    """The node is gone."""


class DataSet(Struct, frozen=True, gc=False):
    """The data were replaced; this is the stat afterwards."""

    stat: Stat


class Checked(Struct, frozen=True, gc=False):
    """The node had the expected version."""


class Data(Struct, frozen=True, gc=False):
    """A node's data; ``None`` where it was made without any."""

    data: bytes | None
    stat: Stat


class Found(Struct, frozen=True, gc=False):
    """The node is there. Its absence is ``Failed(NO_NODE)``."""

    stat: Stat


class Children(Struct, frozen=True, gc=False):
    """The names of a node's children; a ``MultiRead`` gives no stat."""

    names: tuple[str, ...]
    stat: Stat | None


class AclFound(Struct, frozen=True, gc=False):
    """A node's access control list."""

    acl: tuple[Acl, ...]
    stat: Stat


class AclSet(Struct, frozen=True, gc=False):
    """The access control list was replaced."""

    stat: Stat


class Synced(Struct, frozen=True, gc=False):
    """This server has caught up."""

    path: str


class Failed(Struct, frozen=True, gc=False):
    """ZooKeeper refused: nothing was changed.

    Before anything is sent, ``BAD_ARGUMENTS`` means an invalid path and ``MARSHALLING_ERROR`` a
    request larger than the server takes; after it, ``MARSHALLING_ERROR`` means an answer over the limit.
    """

    code: ZkCode


class Lost(Struct, frozen=True, gc=False):
    """No answer came. A write that left this process may have been applied: read back before going on."""

    maybe_applied: bool


WriteResult: TypeAlias = Created | Deleted | DataSet | Checked
ReadResult: TypeAlias = Data | Children | Failed


class MultiDone(Struct, frozen=True):
    """Each operation's result, in order. In a ``MultiRead`` single ones may be ``Failed``."""

    results: tuple[WriteResult | ReadResult, ...]


class MultiFailed(Struct, frozen=True):
    """Nothing was changed, because operation ``index`` failed with ``code``; ``results`` has all codes."""

    index: int
    code: ZkCode
    results: tuple[Failed, ...]


Result: TypeAlias = (
    Created
    | Deleted
    | DataSet
    | Checked
    | Data
    | Found
    | Children
    | AclFound
    | AclSet
    | Synced
    | MultiDone
    | MultiFailed
    | Failed
    | Lost
)


# ---- events -------------------------------------------------------------------------------------


class WatchKind(IntEnum):
    """What happened to a watched node."""

    CREATED = 1
    DELETED = 2
    DATA_CHANGED = 3
    CHILDREN_CHANGED = 4


class WatchEvent(Struct, frozen=True, gc=False):
    """A watch fired and is gone. It is a hint: read again, and arm again by reading."""

    kind: WatchKind
    path: str


class SessionConnected(Struct, frozen=True, gc=False):
    """The session is in use: a new one, or the old one on another connection with its watches kept."""

    session_id: int
    is_new: bool
    timeout_ms: int = 0


class SessionSuspended(Struct, frozen=True, gc=False):
    """The connection is gone; the session lives on at the servers for a while."""

    reason: str = ""


class SessionExpired(Struct, frozen=True, gc=False):
    """The session is over: its ephemeral nodes and its watches are gone."""

    session_id: int = 0
    reason: str = ""


class SessionClosed(Struct, frozen=True, gc=False):
    """We ended the session."""


class AuthFailed(Struct, frozen=True, gc=False):
    """The servers refuse our login; the session is given up."""

    reason: str = ""


SessionEvent: TypeAlias = SessionConnected | SessionSuspended | SessionExpired | SessionClosed | AuthFailed
