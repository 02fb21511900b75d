"""Connects the node with sockets, clock and ZooKeeper: events in, outputs out, both in order."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from ottla.broker.node import Node
from ottla.broker.outputs import (
    AcceptClients,
    Close,
    CloseLink,
    EndKeptSession,
    Exit,
    KeepSession,
    LimitFrames,
    OpenLink,
    Output,
    PauseReading,
    RefuseClients,
    ResumeReading,
    RunInThread,
    SendOnLink,
    SubmitToZooKeeper,
    TakeHeld,
    Write,
)
from ottla.broker.runtime.log_limit import LogLimit
from ottla.model.errors import InvariantBroken, MalformedRequest
from ottla.security.principal import ANONYMOUS, Principal
from ottla.security.shown import shown
from ottla.security.tls.dn import subject_of
from ottla.server.address_limits import AddressLimits
from ottla.server.listener import ClientConnection
from ottla.server.peers import PeerConnection
from ottla.server.timers import SystemClock, Ticker
from ottla.server.tls.doors import TlsDoors
from ottla.server.worker import Worker
from ottla.server.zookeeper.session import ZooKeeperClient
from ottla.zookeeper.ops import (
    AuthFailed,
    Result,
    SessionConnected,
    SessionEvent,
    SessionExpired,
    WatchEvent,
)

log = logging.getLogger(__name__)

RESTING_SECONDS = 5.0
"""A client that is silent for this long gets a small buffer again."""

HANG_UP_SECONDS_MAX = 30.0
"""How long a client may take to read what was written before we closed the connection."""

LOGIN_AGAIN_SECONDS = 1.0
"""How long to wait before asking ZooKeeper again that demanded a login: its settings may have changed."""


class Edge:
    """The loop's side of one node. Every entry ends with ``end_turn``."""

    def __init__(self, loop: asyncio.AbstractEventLoop, node: Node, clock: SystemClock) -> None:
        self.loop = loop
        self.node = node
        self.exit: asyncio.Future[Exit] = loop.create_future()
        self.request_bytes_max = node.config.connections.socket_request_max_bytes
        self.on_accept: Callable[[], None] = lambda: None
        self.on_refuse: Callable[[], None] = lambda: None
        self.on_keep_session: Callable[[KeepSession, ZooKeeperClient], None] = lambda output, client: None
        self.on_end_session: Callable[[str, int], None] = lambda path, session_id: None
        self._clients: dict[int, ClientConnection] = {}
        self._clients_by_host: Counter[str] = Counter()
        self._address_limits = AddressLimits(loop)
        self._refusals = LogLimit(loop.time)
        self._hang_ups = LogLimit(loop.time)
        self._peers: dict[int, PeerConnection] = {}
        self.tls = TlsDoors({})
        self._cut_off: frozenset[str] = frozenset()
        self._zk: ZooKeeperClient | None = None
        self._early: list[SessionEvent] = []
        self._worker = Worker(loop, self._work_done)
        self._ticker = Ticker(loop, clock, self._tick)
        self._next_client = 0
        self._is_performing = False
        self._perform_by_type: dict[type, Callable[[Any], None]] = {
            Write: self._write,
            Close: self._close,
            PauseReading: lambda output: self._pause(output.connection, True),
            ResumeReading: lambda output: self._pause(output.connection, False),
            TakeHeld: self._take_held,
            LimitFrames: self._limit_frames,
            AcceptClients: lambda output: self.on_accept(),
            RefuseClients: lambda output: self.on_refuse(),
            OpenLink: self._open_link,
            SendOnLink: self._send_on_link,
            CloseLink: self._close_link,
            SubmitToZooKeeper: self._submit,
            KeepSession: self._keep_session,
            EndKeptSession: lambda output: self.on_end_session(output.path, output.session_id),
            RunInThread: lambda output: self._worker.run(output.token, output.work),
            Exit: self._exit,
        }

    # ---- the turn

    def end_turn(self) -> None:
        """Perform the node's outputs; events that an output causes at once belong to the same turn."""
        if self._is_performing:
            return
        self._is_performing = True
        try:
            while outputs := self._take_outputs():
                left = iter(outputs)
                while not self._have_performed(left):
                    pass
        finally:
            self._is_performing = False
        self._ticker.aim(self.node.next_deadline_ms())

    def _have_performed(self, outputs: Iterator[Output]) -> bool:
        """Whether all went well; one that fails must not take along those behind it, which may be the end."""
        try:
            for output in outputs:
                self._perform_by_type[type(output)](output)
        except Exception as error:
            self._node_failed("output", error)
            return False
        return True

    def _take_outputs(self) -> list[Output]:
        try:
            return self.node.take_outputs()
        except Exception as error:
            self._node_failed("end of turn", error)
            return []

    def _guarded(self, what: str, call: Callable[..., None], *arguments: Any) -> bool:
        """Whether it went well. A bug in one request must not end the others, a broken invariant must."""
        try:
            call(*arguments)
        except Exception as error:
            self._node_failed(what, error)
            return False
        return True

    def _node_failed(self, what: str, error: Exception) -> None:
        log.critical("internal error in=%s", what, exc_info=error)
        if isinstance(error, InvariantBroken | AssertionError) or not self.node.is_started:
            self._exit(Exit(1, f"internal error: {error}"))

    # ---- clients

    def admit(self, client: ClientConnection) -> bool:
        """Whether a new connection is within the limits."""
        limits = self.node.config.connections
        per_ip = self._address_limits.of(client.host, limits)
        is_full = len(self._clients) >= limits.max_connections
        is_left_out = is_full and not self._is_protected(client.listener)
        if is_left_out or self._clients_by_host[client.host] >= per_ip:
            self._tell_too_many("one is refused", client)
            return False
        if is_full:
            self._make_room()
        self._next_client += 1
        client.id = self._next_client
        self._clients[client.id] = client
        self._clients_by_host[client.host] += 1
        if not client.is_encrypted:
            self._come_in(client, ANONYMOUS)
        return True

    def _come_in(self, client: ClientConnection, principal: Principal) -> None:
        self._guarded(
            "connect", self.node.on_client_connected, client.id, client.listener, client.host, principal
        )
        self.end_turn()

    def secured(self, client: ClientConnection, certificate: bytes | None) -> None:
        """A client's TLS handshake is done: the node hears of it, and who it is by its certificate."""
        principal = ANONYMOUS
        if certificate is not None and client.listener not in self.node.config.listeners.sasl:
            subject = subject_of(certificate)
            name = self.node.config.listeners.tls[client.listener].mapping.name_of(subject)
            if name is None:
                why = f"no rule of ssl.principal.mapping.rules fits {shown(subject)}"
                self._hang_up(client, f"{why} listener={client.listener}")
                return
            principal = Principal("User", name)
        self._come_in(client, principal)

    def handshake_failed(self, client: ClientConnection, reason: str) -> None:
        """A client did not get through the TLS handshake."""
        left_out = self._hang_ups.take()
        if left_out is not None:
            log.warning(
                "TLS handshake failed client=%s listener=%s reason=%s left_out=%d",
                client.host, client.listener, shown(reason), left_out,
            )  # fmt: skip

    def first_frame_bytes_max(self, listener: str) -> int:
        """The largest request that a new connection may send, before a login if the listener wants one."""
        if listener in self.node.config.listeners.sasl:
            return min(self.request_bytes_max, self.node.config.connections.sasl_server_max_receive_size)
        return self.request_bytes_max

    def _limit_frames(self, output: LimitFrames) -> None:
        client = self._clients.get(output.connection)
        if client is not None:
            client.limit_frames(output.bytes_max)

    def _is_protected(self, listener: str) -> bool:
        """Clients must not shut out brokers and the controller, who have a listener of their own."""
        config = self.node.config.listeners
        own = (config.inter_broker_listener_name, config.control_plane_listener_name)
        return len(config.listeners) > 1 and listener in own

    def _make_room(self) -> None:
        """Close the connection of the client that was silent for the longest time."""
        clients = [client for client in self._clients.values() if not self._is_protected(client.listener)]
        if clients:
            silent = min(clients, key=lambda client: client.last_active)
            self._tell_too_many("one makes way", silent)
            silent.abort()

    def _tell_too_many(self, what: str, client: ClientConnection) -> None:
        left_out = self._refusals.take()
        if left_out is not None:
            count = len(self._clients)
            log.warning(
                "too many connections, %s host=%s open=%d left_out=%d", what, client.host, count, left_out
            )

    def request_came(self, client: ClientConnection, frame: memoryview) -> None:
        """One whole request."""
        try:
            self.node.on_request(client.id, frame)
        except Exception as error:
            self.node.meters.internal_errors[int.from_bytes(frame[:2])] += 1
            self._node_failed("request", error)
            client.close()

    def _take_held(self, output: TakeHeld) -> None:
        client = self._clients.get(output.connection)
        if client is not None and not self._guarded("held request", self.node.on_held, client.id):
            client.close()

    def malformed(self, client: ClientConnection, why: MalformedRequest) -> None:
        """The stream cannot be cut into requests."""
        self._hang_up(client, f"malformed stream: {why}")

    def _hang_up(self, client: ClientConnection, reason: str) -> None:
        left_out = self._hang_ups.take()
        if left_out is not None:
            log.warning("hanging up client=%s reason=%s left_out=%d", client.host, reason, left_out)
        client.close()

    def client_lost(self, client: ClientConnection) -> None:
        """The connection has ended."""
        if self._clients.pop(client.id, None) is None:
            return
        self._clients_by_host[client.host] -= 1
        if not self._clients_by_host[client.host]:
            del self._clients_by_host[client.host]
        self._guarded("disconnect", self.node.on_client_lost, client.id)
        self.end_turn()

    def tend_idle_clients(self) -> None:
        """Shrink the buffers of silent clients, and close connections that were silent for too long."""
        now = self.loop.time()
        limit_ms = self.node.config.connections.connections_max_idle_ms
        for client in list(self._clients.values()):
            idle_s = now - client.last_active
            is_stuck = client.is_closing and idle_s > HANG_UP_SECONDS_MAX
            if is_stuck or 0 <= limit_ms < idle_s * 1000:
                client.abort()  # a client that does not read would keep its answers in memory for ever
            elif idle_s > RESTING_SECONDS:
                client.rest()

    def _write(self, output: Write) -> None:
        client = self._clients.get(output.connection)
        if client is not None:
            client.write(output.parts)

    def _close(self, output: Close) -> None:
        client = self._clients.get(output.connection)
        if client is not None:
            self._hang_up(client, output.reason)

    def _pause(self, connection: int, is_paused: bool) -> None:
        client = self._clients.get(connection)
        if client is not None:
            client.pause(is_paused)

    # ---- peers

    def peer_connected(self, link: int) -> None:
        """A link is open."""
        self._guarded("peer connect", self.node.on_peer_connected, link)
        self.end_turn()

    def peer_answered(self, link: int, frame: memoryview) -> None:
        """One whole answer; the protocol ends the turn after the last of them."""
        if not self._guarded("peer answer", self.node.on_peer_frame, link, frame):
            self._close_link(CloseLink(link))
            self._guarded("peer lost", self.node.on_peer_lost, link, "internal error")

    def peer_lost(self, link: int, reason: str) -> None:
        """A link is gone, or could not be opened."""
        self._peers.pop(link, None)
        self._guarded("peer lost", self.node.on_peer_lost, link, reason)
        self.end_turn()

    def _open_link(self, output: OpenLink) -> None:
        peer = self._peers[output.link] = PeerConnection(self, output.link, f"{output.host}:{output.port}")
        if peer.address in self._cut_off:
            self.loop.call_soon(peer.cut)
        else:
            peer.open(output.host, output.port, self.tls.client(output.listener))

    def cut_off(self, addresses: frozenset[str]) -> None:
        """From now on these peers are out of reach, and no others."""
        self._cut_off = addresses
        for peer in list(self._peers.values()):
            if peer.address in addresses:
                peer.cut()

    def _send_on_link(self, output: SendOnLink) -> None:
        peer = self._peers.get(output.link)
        if peer is not None:
            peer.write(output.parts)

    def _close_link(self, output: CloseLink) -> None:
        peer = self._peers.pop(output.link, None)
        if peer is not None:
            peer.forget()

    # ---- ZooKeeper

    def begin(self, zk: ZooKeeperClient) -> None:
        """ZooKeeper has given us a session: start the node, and pass on the events since."""
        self._zk = zk
        self._guarded("start", self.node.start)
        early, self._early = self._early, []
        for event in early:
            self._guarded("session", self.node.on_zk_session, event)
        self.end_turn()

    def on_zk_event(self, event: WatchEvent | SessionEvent) -> None:
        """A watch fired, or the session changed."""
        if self._zk is None:
            self._note_early(event)
        elif isinstance(event, WatchEvent):
            self._guarded("watch", self.node.on_zk_watch, event)
        else:
            self._guarded("session", self.node.on_zk_session, event)
            if isinstance(event, AuthFailed):
                self.loop.call_later(LOGIN_AGAIN_SECONDS, self._zk.start)
        self.end_turn()

    def _note_early(self, event: WatchEvent | SessionEvent) -> None:
        """The node has not started yet: keep only the events of the newest session."""
        if isinstance(event, SessionExpired) or (isinstance(event, SessionConnected) and event.is_new):
            self._early = []
        if not isinstance(event, SessionExpired | WatchEvent):
            self._early.append(event)

    def _submit(self, output: SubmitToZooKeeper) -> None:
        assert self._zk is not None, "the node starts after ZooKeeper's session"
        token = output.token
        self._zk.submit_then(output.operation, lambda result: self._zk_answered(token, result))

    def _keep_session(self, output: KeepSession) -> None:
        assert self._zk is not None, "the node registers in a session"
        self.on_keep_session(output, self._zk)

    def _zk_answered(self, token: int, result: Result) -> None:
        if not self.exit.done():
            self._guarded("zookeeper answer", self.node.on_zk_result, token, result)
            self.end_turn()

    # ---- time, work, end

    def _tick(self) -> None:
        self._guarded("tick", self.node.on_tick)
        self.end_turn()

    def _work_done(self, token: int, outcome: Any) -> None:
        self._guarded("work", self.node.on_work_done, token, outcome)
        self.end_turn()

    def begin_shutdown(self) -> None:
        """Somebody asked the process to end."""
        self._guarded("shutdown", self.node.begin_shutdown)
        self.end_turn()

    def _exit(self, output: Exit) -> None:
        if not self.exit.done():
            self.exit.set_result(output)

    async def drain(self, seconds_max: float) -> None:
        """Let clients have what was written to them, then hang up."""
        for client in list(self._clients.values()):
            client.close()
        deadline = self.loop.time() + seconds_max
        while self._clients and self.loop.time() < deadline:
            await asyncio.sleep(0.01)
        for client in list(self._clients.values()):
            client.abort()
        for peer in list(self._peers.values()):
            peer.forget()
        self._peers.clear()
        self._worker.stop()
        self._ticker.stop()
