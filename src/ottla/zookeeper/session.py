"""A ZooKeeper session as a machine: bytes and ticks go in, bytes and events come out.

Life of a session::

    IDLE -> CONNECTING -> HANDSHAKE -> CONNECTED -> (connection lost) -> WAITING -> CONNECTING ...
                                          |
                                          +-> CLOSED, AUTH_FAILED, or a new session after an expiry

What it promises:

- Every submitted operation ends in exactly one ``Completed``. A read is asked again after a lost
  connection; a write that was on the wire ends as ``Lost(maybe_applied=True)``.
- Results and watch events come in the order in which the server sent them, so that nobody sees new data
  before the event that announces it.
- No watch is lost while the session lives: all are armed again, relative to the last transaction whose
  events had surely all been received.
- Only the server ends a session.
"""

from collections import Counter
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

from ottla.zookeeper.connect_string import Ensemble, Host
from ottla.zookeeper.frames import REPLY_BYTES_MAX, FrameReader, Oversize
from ottla.zookeeper.hosts import HostRing, Random
from ottla.zookeeper.jute import MalformedReply
from ottla.zookeeper.ops import (
    AuthFailed,
    Failed,
    Lost,
    Op,
    Result,
    SessionClosed,
    SessionConnected,
    SessionEvent,
    SessionExpired,
    SessionSuspended,
    WatchEvent,
    ZkCode,
)
from ottla.zookeeper.protocol import (
    XID_AUTH,
    XID_NOTIFICATION,
    XID_PING,
    BadArguments,
    OpCode,
    encode_op,
    frame_auth,
    frame_connect,
    frame_ping,
    read_connect_reply,
    read_header,
    read_result,
    read_watch_event,
)
from ottla.zookeeper.requests import Request, RequestQueue, request_for
from ottla.zookeeper.watches import Watches

REQUEST_BYTES_MAX: Final = 1_048_575
"""The server's default ``jute.maxbuffer``: it hangs up on anything longer."""
CONNECT_MS_MIN: Final = 250
REFUSALS_TO_BE_SURE: Final = 3
"""A connection may break once or twice just before it is taken over."""
STABLE_MS: Final = 1_000
"""After a connection that lasted this long, all servers are tried again without a pause."""
NO_PASSWORD: Final = bytes(16)
LOGIN_DEMANDED: Final = (
    "the servers demand a login, and brokers have none; let ZooKeeper accept sessions without one"
    " (sessionRequireClientSASLAuth, enforce.auth.enabled)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionConfig:
    """What a session needs to know."""

    ensemble: Ensemble
    session_timeout_ms: int = 18_000
    auth: tuple[tuple[str, bytes], ...] = ()
    renew_after_expiry: bool = True
    """Begin the next session at once; otherwise ``start`` does it."""
    reply_bytes_max: int = REPLY_BYTES_MAX
    request_bytes_max: int = REQUEST_BYTES_MAX


@dataclass(frozen=True, slots=True)
class OpenConnection:
    """Connect to this server, and report ``connection_made`` or ``connection_lost``."""

    host: Host


@dataclass(frozen=True, slots=True)
class CloseConnection:
    """Drop the connection or the attempt, and report nothing more about it."""

    reason: str


@dataclass(slots=True)
class Completed:
    """The outcome of the operation that was submitted with this token."""

    token: object
    result: Result


Event: TypeAlias = OpenConnection | CloseConnection | Completed | WatchEvent | SessionEvent


class State(Enum):
    """Where a session is."""

    IDLE = "idle"
    CONNECTING = "connecting"
    HANDSHAKE = "handshake"
    CONNECTED = "connected"
    WAITING = "waiting"
    AUTH_FAILED = "auth failed"
    CLOSED = "closed"


class Session:
    """One client's sessions at one ensemble, one after the other."""

    def __init__(self, config: SessionConfig, random: Random) -> None:
        self.config = config
        self.state = State.IDLE
        self.session_id = 0
        self.password = NO_PASSWORD
        """What proves to the servers that the session is ours."""
        self.timeout_ms = config.session_timeout_ms
        self.last_zxid = 0
        self.watches = Watches()
        self.ring = HostRing(config.ensemble.hosts, random)
        self._chroot = config.ensemble.chroot
        self._auth = list(config.auth)
        self._queue = RequestQueue()
        self._reader = FrameReader(config.reply_bytes_max)
        self.host = config.ensemble.hosts[0]
        """The server that is talked to, or was last."""
        self._out: list[bytes] = []
        self._events: list[Event] = []
        self._watch_chunks_pending = 0
        self._deadline_ms = 0
        self._close_deadline_ms: int | None = None
        self._connected_ms = 0
        self._last_heard_ms = 0
        self._last_sent_ms = 0
        self._last_contact_ms = 0
        self._refused_by: set[Host] = set()
        self._knows_us: set[Host] = set()
        """Servers that would have resumed the session if it had seen nothing."""
        self._behind: Counter[Host] = Counter()
        """How often each of them refused us afterwards."""
        self._is_probe = False
        self._probed: set[Host] = set()

    # ---- what the owner asks ----------------------------------------------------------------------

    def start(self, now_ms: int) -> None:
        """Begin a session, also after an expiry or a failed login."""
        if self.state in (State.IDLE, State.AUTH_FAILED):
            self._open(now_ms)

    def submit(self, op: Op, token: object, *, is_absolute: bool = False) -> None:
        """Ask; a ``Completed`` with this token will answer. An absolute path ignores the chroot."""
        if self.state in (State.AUTH_FAILED, State.CLOSED) or self._close_deadline_ms is not None:
            self._events.append(Completed(token, Lost(False)))
            return
        chroot = "" if is_absolute else self._chroot
        try:
            body = encode_op(op, chroot.encode())
        except BadArguments:
            self._events.append(Completed(token, Failed(ZkCode.BAD_ARGUMENTS)))
            return
        if len(body) + 8 > self.config.request_bytes_max:
            self._events.append(Completed(token, Failed(ZkCode.MARSHALLING_ERROR)))
            return
        self._queue.waiting.append(request_for(op, body, token, chroot))

    def add_auth(self, scheme: str, credential: bytes) -> None:
        """Log in, on this connection and on every later one."""
        self._auth.append((scheme, credential))
        if self.state is State.CONNECTED:
            self._out.append(frame_auth(scheme, credential))

    def close(self, now_ms: int, limit_ms: int = 2_000) -> None:
        """End the session after what was submitted before; give up on the servers after the limit."""
        if self.state is State.CLOSED or self._close_deadline_ms is not None:
            return
        self._close_deadline_ms = now_ms + limit_ms
        if self.session_id == 0:
            self._finish("closed before there was a session")
        elif self.state is State.CONNECTED:
            self._queue.waiting.append(Request(None, OpCode.CLOSE, b""))

    # ---- what the connection reports --------------------------------------------------------------

    def connection_made(self, now_ms: int) -> None:
        """The server accepted the connection: shake hands."""
        if self.state is not State.CONNECTING:
            return
        self.state = State.HANDSHAKE
        self._reader = FrameReader(self.config.reply_bytes_max)
        self._last_sent_ms = now_ms
        zxid = 0 if self._is_probe else self.last_zxid
        timeout_ms = self.config.session_timeout_ms
        self._out = [frame_connect(zxid, timeout_ms, self.session_id, self.password)]

    def connection_lost(self, reason: str, now_ms: int) -> None:
        """The connection broke, or the attempt at one failed."""
        if self.state is State.HANDSHAKE and self._is_behind_after_refusal():
            self._expire("all servers are behind what the session has seen", now_ms)
        elif self.state in (State.CONNECTING, State.HANDSHAKE, State.CONNECTED):
            self._lose_connection(reason, now_ms)

    def receive_bytes(self, data: bytes, now_ms: int) -> None:
        """The server sent this. Bytes that make no sense end the connection, not the session."""
        if self.state not in (State.HANDSHAKE, State.CONNECTED):
            return
        self._last_heard_ms = now_ms
        reader = self._reader
        reader.feed(data)
        try:
            while self.state in (State.HANDSHAKE, State.CONNECTED) and reader is self._reader:
                frame = reader.next_frame()
                if frame is None:
                    return
                if self.state is State.HANDSHAKE:
                    self._on_handshake(frame, now_ms)
                elif isinstance(frame, Oversize):
                    self._on_oversize(frame)
                else:
                    self._on_reply(frame, now_ms)
        except MalformedReply as problem:
            self._hang_up(f"it does not speak ZooKeeper's protocol: {problem}", now_ms)

    def tick(self, now_ms: int) -> None:
        """Time has passed: ping, or give up what took too long."""
        if self.state is State.CLOSED:
            return
        if self._close_deadline_ms is not None and now_ms >= self._close_deadline_ms:
            self._finish("the servers did not answer in time")
        elif self.state is State.WAITING and now_ms >= self._deadline_ms:
            self._open(now_ms)
        elif self.state in (State.CONNECTING, State.HANDSHAKE) and now_ms >= self._deadline_ms:
            self._hang_up("it did not answer in time", now_ms)
        elif self.state is State.CONNECTED:
            if now_ms - self._last_heard_ms >= self.timeout_ms * 2 // 3:
                self._hang_up(f"nothing was heard for {now_ms - self._last_heard_ms} ms", now_ms)
            elif now_ms - self._last_sent_ms >= self.timeout_ms // 3:
                self._out.append(frame_ping())
                self._last_sent_ms = now_ms  # even while the connection takes no more bytes

    def next_tick_ms(self) -> int | None:
        """When ``tick`` must be called at the latest."""
        times = [] if self._close_deadline_ms is None else [self._close_deadline_ms]
        if self.state is State.CONNECTED:
            times.append(self._last_heard_ms + self.timeout_ms * 2 // 3)
            times.append(self._last_sent_ms + self.timeout_ms // 3)
        elif self.state in (State.CONNECTING, State.HANDSHAKE, State.WAITING):
            times.append(self._deadline_ms)
        return min(times) if times and self.state is not State.CLOSED else None

    # ---- what comes out ---------------------------------------------------------------------------

    def bytes_to_send(self, now_ms: int) -> bytes:
        """What is to go to the server now; it counts as sent."""
        frames, self._out = self._out, []
        if self.state is State.CONNECTED:
            frames += self._queue.take()
        if not frames:
            return b""
        self._last_sent_ms = now_ms
        return b"".join(frames)

    def events(self) -> list[Event]:
        """What happened since the last call, in order."""
        events, self._events = self._events, []
        return events

    # ---- connecting -------------------------------------------------------------------------------

    def _open(self, now_ms: int) -> None:
        self.state = State.CONNECTING
        self.host = self.ring.next_host()
        self._deadline_ms = now_ms + max(self.timeout_ms // len(self.ring), CONNECT_MS_MIN)
        self._is_probe = self.host not in self._probed and self._history_may_be_gone(now_ms)
        (self._probed.add if self._is_probe else self._probed.discard)(self.host)
        self._events.append(OpenConnection(self.host))

    def _history_may_be_gone(self, now_ms: int) -> bool:
        """Servers refuse, without a word, a client that saw a later transaction than they know.

        If this goes on for longer than the session may last, their data may have been wiped or restored.
        Every second attempt at a server then claims to have seen nothing, to hear whether it knows us.
        Servers without a quorum are as silent: one that knows us, and refuses us afterwards time and again,
        is behind.
        """
        is_silent = now_ms - self._last_contact_ms > self.timeout_ms
        return self.session_id != 0 and is_silent and self.host in self._refused_by

    def _is_behind_after_refusal(self) -> bool:
        """A server hung up in the handshake; whether none is left that might still know our history."""
        self._refused_by.add(self.host)
        if self.host in self._knows_us:
            self._knows_us.discard(self.host)
            self._behind[self.host] += not self._is_probe
        return all(self._behind[host] >= REFUSALS_TO_BE_SURE for host in self._refused_by)

    def _on_handshake(self, frame: bytes | Oversize, now_ms: int) -> None:
        if isinstance(frame, Oversize):
            raise MalformedReply(f"its first frame has {frame.size} bytes")
        timeout_ms, session_id, password, is_read_only = read_connect_reply(frame)
        if session_id == 0 or timeout_ms <= 0:
            if self.session_id == 0:
                raise MalformedReply("it gives no session")
            self._expire("the servers do not know the session any more", now_ms)
        elif is_read_only:
            self._hang_up("it is read-only, as it has no quorum", now_ms)
        elif self._is_probe:
            self._knows_us.add(self.host)
            self._hang_up("it may be behind what the session has seen", now_ms)
        else:
            self._connected(session_id, password, timeout_ms, now_ms)

    def _connected(self, session_id: int, password: bytes, timeout_ms: int, now_ms: int) -> None:
        is_new = self.session_id == 0
        self.state = State.CONNECTED
        self.session_id, self.password, self.timeout_ms = session_id, password, timeout_ms
        self._connected_ms = self._last_contact_ms = now_ms
        self.ring.connected()
        self._forget_refusals()
        self._out += [frame_auth(scheme, credential) for scheme, credential in self._auth]
        bodies = list(self.watches.set_watches_bodies(self.last_zxid, self._chroot))
        self._watch_chunks_pending = len(bodies)
        self._queue.waiting.extendleft(Request(None, OpCode.SET_WATCHES, body) for body in reversed(bodies))
        if self._close_deadline_ms is not None:
            self._queue.waiting.append(Request(None, OpCode.CLOSE, b""))
        self._events.append(SessionConnected(session_id, is_new, timeout_ms))

    # ---- replies ----------------------------------------------------------------------------------

    def _on_reply(self, frame: bytes, now_ms: int) -> None:
        xid, zxid, code = read_header(frame)
        self._last_contact_ms = now_ms
        if xid == XID_NOTIFICATION:
            self._on_notification(frame)
        elif xid == XID_PING:
            pass
        elif xid == XID_AUTH:
            if code != 0:
                why = f"the servers refuse the login ({ZkCode(code).name}); check the user and the password"
                self._refuse_login(why)
        elif code == ZkCode.SESSION_CLOSED_REQUIRE_SASL_AUTH:
            self._refuse_login(LOGIN_DEMANDED)
        else:
            self._on_answer(self._queue.answered(xid), zxid, code, frame)

    def _on_notification(self, frame: bytes) -> None:
        # The zxid of a notification is not taken over: one transaction may fire several watches, and if
        # the connection broke between two of them, the second would not be asked for again.
        event = read_watch_event(frame, self._chroot)
        if event is not None:
            self.watches.fired(event)
            self._events.append(event)

    def _on_answer(self, request: Request, zxid: int, code: int, frame: bytes) -> None:
        if request.op is None:
            if request.code == OpCode.CLOSE:
                self._finish("closed")
            elif code != 0:
                raise MalformedReply(f"it does not arm our watches again ({ZkCode(code).name})")
            else:
                self._watch_chunks_pending -= 1
        else:
            result = self._read_result(request, request.op, code, frame)
            if getattr(request.op, "watch", False):
                self.watches.answered(request.op, result)
            self._events.append(Completed(request.token, result))
        # Until all watches are armed again, what happened before this connection is not yet all told.
        if zxid > self.last_zxid and self._watch_chunks_pending == 0:
            self.last_zxid = zxid

    def _read_result(self, request: Request, op: Op, code: int, frame: bytes) -> Result:
        try:
            return read_result(op, code, frame, request.chroot)
        except MalformedReply:
            self._complete_unreadable(request)
            raise

    def _on_oversize(self, frame: Oversize) -> None:
        """The answer is larger than we accept: the caller hears so, and the rest is skipped."""
        xid, _, _ = read_header(frame.header)
        request = self._queue.answered(xid)
        if request.op is None:
            raise MalformedReply(f"a frame of {frame.size} bytes answers nothing")
        self._complete_unreadable(request)

    def _complete_unreadable(self, request: Request) -> None:
        """The answer is too large to read. A read is not repeated: it would get the same answer."""
        outcome = Failed(ZkCode.MARSHALLING_ERROR) if request.is_read else Lost(True)
        self._events.append(Completed(request.token, outcome))

    # ---- ends -------------------------------------------------------------------------------------

    def _hang_up(self, reason: str, now_ms: int) -> None:
        self._events.append(CloseConnection(reason))
        self._lose_connection(reason, now_ms)

    def _lose_connection(self, reason: str, now_ms: int) -> None:
        was_connected = self.state is State.CONNECTED
        if self.state is State.CONNECTING:
            self._knows_us.discard(self.host)  # it ended since, and may be another
        self._out.clear()
        self.state = State.WAITING
        if was_connected:
            if now_ms - self._connected_ms >= STABLE_MS:
                self.ring.was_stable()
            self._events.append(SessionSuspended(f"{self.host}: {reason}"))
            was_closing = any(request.code == OpCode.CLOSE for request in self._queue.in_flight)
            self._complete_lost(self._queue.connection_lost())
            if was_closing:
                self._finish("the connection broke while the session was closed")
                return
        self._deadline_ms = now_ms + self.ring.failed(self.host, reason)
        if self._deadline_ms == now_ms:
            self._open(now_ms)

    def _expire(self, reason: str, now_ms: int) -> None:
        self._events.append(CloseConnection(reason))
        self._events.append(SessionExpired(self.session_id, reason))
        self._forget_session()
        if self._close_deadline_ms is not None:
            self._finish(reason)
        elif self.config.renew_after_expiry:
            self._open(now_ms)
        else:
            self.state = State.IDLE

    def _refuse_login(self, reason: str) -> None:
        self._events.append(CloseConnection(reason))
        self.state = State.AUTH_FAILED
        self._events.append(AuthFailed(reason))
        self._forget_session()

    def _finish(self, reason: str) -> None:
        if self.state in (State.CONNECTING, State.HANDSHAKE, State.CONNECTED):
            self._events.append(CloseConnection(reason))
        self.state = State.CLOSED
        self._forget_session()
        self._events.append(SessionClosed())

    def _forget_session(self) -> None:
        self._out.clear()
        self.watches.clear()
        self.session_id, self.password, self.last_zxid = 0, NO_PASSWORD, 0
        self.timeout_ms = self.config.session_timeout_ms
        self._forget_refusals()
        self._complete_lost(self._queue.session_over())

    def _forget_refusals(self) -> None:
        self._refused_by.clear()
        self._knows_us.clear()
        self._behind.clear()

    def _complete_lost(self, lost: list[tuple[Request, Lost]]) -> None:
        self._events += [Completed(request.token, result) for request, result in lost]
