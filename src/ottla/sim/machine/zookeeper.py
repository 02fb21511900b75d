"""The simulated ZooKeeper service: sessions over a network that delays, cuts and expires them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from ottla.sim.machine.network import Network
from ottla.sim.machine.zookeeper_server import Fired, ZooKeeperServer
from ottla.sim.world import MILLISECOND, SECOND, World
from ottla.zookeeper.ops import (
    ANY_VERSION,
    Delete,
    Lost,
    Op,
    SessionConnected,
    SessionExpired,
    SessionSuspended,
    WatchEvent,
)
from ottla.zookeeper.watches import Watches

HOST = "zookeeper"
RECONNECT_US = 200 * MILLISECOND


class Owner(Protocol):
    """The process a session belongs to."""

    host: str
    is_running: bool
    is_paused: bool
    life: int
    """Changes with every start and every end of the process."""

    def on_zk_event(self, event: Any) -> None: ...

    def on_zk_result(self, token: int, result: Any) -> None: ...


@dataclass
class _Nobody:
    """The owner of a session whose process died: it hears nothing, and is not heard."""

    host: str
    is_running: bool = False
    is_paused: bool = False
    life: int = -1

    def on_zk_event(self, event: Any) -> None: ...

    def on_zk_result(self, token: int, result: Any) -> None: ...


@dataclass
class Session:
    """One client's session, on both sides: what the client holds and what the servers hold."""

    owner: Owner
    number: int
    timeout_us: int
    heard_us: int
    connection: int = 1
    """Counts the connections: what belongs to an older one is not delivered."""
    is_connected: bool = True
    is_known: bool = False
    """The client has heard that the session is there."""
    is_over: bool = False
    last_zxid: int = 0
    to_server_us: int = 0
    to_client_us: int = 0
    stalled_to_server: list[Callable[[], None]] = field(default_factory=list)
    stalled_to_client: list[Callable[[], None]] = field(default_factory=list)
    in_flight: dict[int, Op] = field(default_factory=dict)
    queued: list[tuple[int, Op]] = field(default_factory=list)
    watches: Watches = field(default_factory=Watches)
    """What the client holds, and names again when it is back."""


class ZooKeeperService:
    """One tree, many sessions. ``is_up`` false is an ensemble without a quorum."""

    def __init__(self, world: World, network: Network) -> None:
        self.world = world
        self.network = network
        self.tree = ZooKeeperServer()
        self.is_up = True
        self.is_slow = False
        self.sessions: dict[int, Session] = {}
        self.on_write: Callable[[Op, Any], None] | None = None
        self._untold: list[Session] = []
        """Sessions that are over while their owners believe in them."""
        self._away_until_us: dict[str, int] = {}
        self._last_session = 0
        world.after(SECOND // 10, self._watch_over)

    # -- the client's side -------------------------------------------------------------------

    def open(self, owner: Owner, timeout_ms: int) -> None:
        """Begin a session as soon as the service can be reached, unless the process dies before."""
        self._open(owner, timeout_ms, owner.life)

    def _open(self, owner: Owner, timeout_ms: int, life: int) -> None:
        if owner.life != life:
            return
        if not self._reachable(owner) or not owner.is_running:
            self.world.after(RECONNECT_US, lambda: self._open(owner, timeout_ms, life))
            return
        self._last_session += 1
        session = Session(owner, self._last_session, timeout_ms * MILLISECOND, self.world.now_us)
        self.tree.open_session(session.number)
        self.sessions[session.number] = session
        self._to_client(session, lambda: self._tell_connected(session))

    @staticmethod
    def _tell_connected(session: Session) -> None:
        """The session is new to the client if it has not heard of it, however old it is at the servers."""
        is_new, session.is_known = not session.is_known, True
        timeout_ms = session.timeout_us // MILLISECOND
        session.owner.on_zk_event(SessionConnected(session.number, is_new, timeout_ms))

    def session_of(self, owner: Owner) -> Session | None:
        return next((s for s in self.sessions.values() if s.owner is owner and not s.is_over), None)

    def submit(self, owner: Owner, token: int, op: Op) -> None:
        session = self.session_of(owner)
        if session is None:
            session = next((ended for ended in self._untold if ended.owner is owner), None)
        if session is None:
            self.world.after(RECONNECT_US, partial(self._tell_lost, owner, owner.life, token))
        elif not session.is_connected:
            session.queued.append((token, op))
        else:
            self._send(session, token, op)

    @staticmethod
    def _tell_lost(owner: Owner, life: int, token: int) -> None:
        """Nobody can be asked. The next process on the same host has asked nothing."""
        if owner.life == life:
            owner.on_zk_result(token, Lost(False))

    def _send(self, session: Session, token: int, op: Op) -> None:
        session.in_flight[token] = op
        connection = session.connection
        arrival_us = max(self.world.now_us + self._latency_us(), session.to_server_us)
        session.to_server_us = arrival_us

        def arrive() -> None:
            if session.connection == connection:
                self._pass(session, session.stalled_to_server, lambda: self._serve(session, token, op))

        self.world.after(arrival_us - self.world.now_us, arrive)

    def _pass(self, session: Session, stalled: list[Callable[[], None]], run: Callable[[], None]) -> None:
        """Let a message through; what meets a cut waits for its end, or for the connection's."""
        if stalled or not self._reachable(session.owner):
            stalled.append(run)
        else:
            run()

    def close(self, owner: Owner) -> None:
        """The process ends its session in order."""
        self.process_died(owner)
        for session in list(self.sessions.values()):
            if session.owner.host == owner.host and isinstance(session.owner, _Nobody):
                self._end(session)

    def process_died(self, owner: Owner) -> None:
        """Nobody holds the client's side any more; the servers will find out."""
        for ended in self._untold:
            if ended.owner is owner:
                ended.owner = _Nobody(owner.host)
        session = self.session_of(owner)
        if session is not None:
            session.owner = _Nobody(owner.host)
            session.is_connected = False
            session.connection += 1
            session.queued.clear()
            session.in_flight.clear()

    def expire(self, owner: Owner) -> None:
        """A fault: the servers end a session at once, as if it had been silent too long."""
        session = self.session_of(owner)
        if session is not None:
            self._end(session)

    def split(self, owner: Owner, span_us: int) -> None:
        """A fault: the server of this session lost its quorum. It hangs up at once, and the client
        needs so long to find another."""
        self._away_until_us[owner.host] = self.world.now_us + span_us
        session = self.session_of(owner)
        if session is not None and session.is_connected and session.is_known and owner.is_running:
            self._suspend(session)

    def end_of_dead(self, number: int, before: Sequence[Op] = ()) -> None:
        """Somebody who knows that a session's process is dead does this in it, and ends it."""

        def arrive() -> None:
            session = self.sessions.get(number)
            if session is not None and self.is_up:
                assert isinstance(session.owner, _Nobody), f"session {number} was ended, its process lives"
                for op in before:
                    self._deliver(self.tree.apply(op, number, self.world.now_ms)[1])
                self._end(session)

        self.world.after(self._latency_us(), arrive)

    def heal(self) -> None:
        """All servers are up, quick, and agree."""
        self.is_up = True
        self.is_slow = False
        self._away_until_us.clear()

    def delete(self, path: str) -> bool:
        """A fault: somebody deletes a node by hand; whether it was there."""
        is_there = path in self.tree.nodes
        if is_there:
            operator = self._last_session + 1_000_000
            self.tree.open_session(operator)
            _, fired = self.tree.apply(Delete(path, ANY_VERSION), operator, self.world.now_ms)
            self._deliver(fired + self.tree.end_session(operator))
        return is_there

    # -- the servers' side -------------------------------------------------------------------

    def _serve(self, session: Session, token: int, op: Op) -> None:
        if session.number not in self.sessions:
            return
        session.heard_us = self.world.now_us
        result, fired = self.tree.apply(op, session.number, self.world.now_ms)
        if self.on_write is not None:
            self.on_write(op, result)
        self._deliver(fired)
        zxid = self.tree.zxid

        def answer() -> None:
            if session.in_flight.pop(token, None) is not None:
                session.last_zxid = max(session.last_zxid, zxid)
                if getattr(op, "watch", False):
                    session.watches.answered(op, result)
                session.owner.on_zk_result(token, result)

        self._to_client(session, answer)

    def _deliver(self, fired: list[Fired]) -> None:
        for number, event in fired:
            session = self.sessions.get(number)
            if session is not None and session.is_connected:
                # Whoever is away hears of it when it returns and names the watches it holds.
                self._to_client(session, partial(self.hand_over, session, event))

    @staticmethod
    def hand_over(session: Session, event: WatchEvent) -> None:
        session.watches.fired(event)
        session.owner.on_zk_event(event)

    def _to_client(self, session: Session, run: Callable[[], None]) -> None:
        connection = session.connection
        arrival_us = max(self.world.now_us + self._latency_us(), session.to_client_us)
        session.to_client_us = arrival_us

        def arrive() -> None:
            if session.connection == connection:
                self._pass(session, session.stalled_to_client, run)

        self.world.after(arrival_us - self.world.now_us, arrive)

    # -- silence -----------------------------------------------------------------------------

    def _watch_over(self) -> None:
        """Ten times a second: who can be heard, who must be given up, who may come back."""
        now_us = self.world.now_us
        for session in list(self.sessions.values()):
            if self._reachable(session.owner) and session.owner.is_running:
                session.heard_us = now_us
                if not session.is_connected:
                    self._reconnect(session)
                else:
                    self._flush(session)
            else:
                silent_us = now_us - session.heard_us
                has_noticed = session.owner.is_running and silent_us > session.timeout_us * 2 // 3
                if session.is_connected and has_noticed:
                    self._suspend(session)
                if silent_us > session.timeout_us and self.is_up:
                    self._end(session)
        self.world.after(SECOND // 10, self._watch_over)

    @staticmethod
    def _flush(session: Session) -> None:
        for stalled in (session.stalled_to_server, session.stalled_to_client):
            waiting, stalled[:] = list(stalled), []
            for run in waiting:
                run()

    def _suspend(self, session: Session) -> None:
        """The client has heard nothing for too long: what is under way may or may not have happened."""
        session.is_connected = False
        session.connection += 1
        session.stalled_to_server.clear()
        session.stalled_to_client.clear()
        lost, session.in_flight = session.in_flight, {}
        for token in lost:
            session.owner.on_zk_result(token, Lost(True))
        session.owner.on_zk_event(SessionSuspended("no answer"))

    def _reconnect(self, session: Session) -> None:
        session.is_connected = True
        session.connection += 1
        fired = self.tree.watch_again(session.number, session.last_zxid, session.watches)
        self._to_client(session, lambda: self._tell_connected(session))
        self._deliver(fired)
        queued, session.queued = session.queued, []
        for token, op in queued:
            self._send(session, token, op)

    def _end(self, session: Session) -> None:
        """The session is over at the servers; its owner hears of it when it can be reached."""
        self.sessions.pop(session.number, None)
        session.is_over = True
        session.is_connected = False
        self._untold.append(session)
        self._deliver(self.tree.end_session(session.number))
        self._tell_the_end(session)

    def _tell_the_end(self, session: Session) -> None:
        owner = session.owner
        if not owner.is_running:
            self._wait_for_owner(session)
            return
        if not self._reachable(owner):
            self.world.after(RECONNECT_US, lambda: self._tell_the_end(session))
            return
        self._untold.remove(session)
        session.connection += 1
        lost, session.in_flight = session.in_flight, {}
        queued, session.queued = session.queued, []
        for token in lost:
            owner.on_zk_result(token, Lost(True))
        for token, _ in queued:
            owner.on_zk_result(token, Lost(False))
        owner.on_zk_event(SessionExpired(session.number, "expired"))
        self.open(owner, session.timeout_us // MILLISECOND)

    def _wait_for_owner(self, session: Session) -> None:
        """A paused process hears of the end when it goes on; a dead one never does."""
        if session.owner.is_paused:
            self.world.after(RECONNECT_US, lambda: self._tell_the_end(session))
        else:
            self._untold.remove(session)

    def _reachable(self, owner: Owner) -> bool:
        if self._away_until_us and self._away_until_us.get(owner.host, 0) > self.world.now_us:
            return False
        return self.is_up and self.network.can_talk(owner.host, HOST)

    def _latency_us(self) -> int:
        if self.is_slow:
            return self.world.between(20_000, 800_000)
        return self.network.latency_us()
