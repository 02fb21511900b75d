"""What a broker asks its edge to do. The edge takes these after every call into the node."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

Buffer: TypeAlias = bytes | bytearray | memoryview


@dataclass(slots=True)
class Write:
    """Send these bytes to a client; replies already stand in the order of their requests."""

    connection: int
    parts: list[Buffer]


@dataclass(slots=True)
class Close:
    """Hang up on a client, for the reason that goes to the log."""

    connection: int
    reason: str


@dataclass(slots=True)
class PauseReading:
    """The client is owed too much: read no more from it until it is served."""

    connection: int


@dataclass(slots=True)
class ResumeReading:
    """The client may send again."""

    connection: int


@dataclass(slots=True)
class TakeHeld:
    """What a client sent behind a request that is answered now may be handled: ``on_held``."""

    connection: int


@dataclass(slots=True)
class LimitFrames:
    """The client has logged in: from now on it may send requests of this size."""

    connection: int
    bytes_max: int


@dataclass(slots=True)
class AcceptClients:
    """The broker is registered: open its listeners."""


@dataclass(slots=True)
class RefuseClients:
    """The broker is leaving: accept no new connection; those that stand are served on."""


@dataclass(slots=True)
class OpenLink:
    """Connect to a peer; ``on_peer_connected`` or ``on_peer_lost`` answers."""

    link: int
    host: str
    port: int
    listener: str = ""
    """Which of its listeners that is: our own of that name says whether it is encrypted, and how."""


@dataclass(slots=True)
class SendOnLink:
    """Send these bytes to a peer that is connected."""

    link: int
    parts: list[Buffer]


@dataclass(slots=True)
class CloseLink:
    """Forget a peer's connection; nothing more is reported of it."""

    link: int


@dataclass(slots=True)
class SubmitToZooKeeper:
    """Run one operation in the present session; ``on_zk_result`` answers with the same token."""

    token: int
    operation: Any


@dataclass(slots=True)
class KeepSession:
    """Let the guard, and by this file the next start, know how to end the present session, should this
    process die without doing so."""

    path: str
    broker_id: int
    epoch: int


@dataclass(slots=True)
class EndKeptSession:
    """End the session that this file tells of, if it is the one named: its process is dead."""

    path: str
    session_id: int


@dataclass(slots=True)
class RunInThread:
    """Do slow work (fsync, cold read, compaction) off the loop; ``on_work_done`` answers."""

    token: int
    work: Callable[[], Any]


@dataclass(slots=True)
class Exit:
    """The node is done: close ZooKeeper's session and end the process with this code."""

    code: int
    reason: str


Output: TypeAlias = (
    Write
    | Close
    | PauseReading
    | ResumeReading
    | TakeHeld
    | LimitFrames
    | AcceptClients
    | RefuseClients
    | OpenLink
    | SendOnLink
    | CloseLink
    | SubmitToZooKeeper
    | KeepSession
    | EndKeptSession
    | RunInThread
    | Exit
)
