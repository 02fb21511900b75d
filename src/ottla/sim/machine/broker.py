"""A broker process in the simulated world: the real node behind a simulated edge."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from random import Random
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
from ottla.config.areas import BrokerConfig
from ottla.model.errors import LogDirectoryFailed
from ottla.sim.machine.disks import Disks
from ottla.sim.machine.guard import SimGuard
from ottla.sim.machine.network import Connection, Network
from ottla.sim.machine.zookeeper import ZooKeeperService
from ottla.sim.world import MILLISECOND, SimClock, World
from ottla.storage.directories.opening import CannotStart
from ottla.zookeeper.ops import WatchEvent

SIZE_BYTES = 4
WORK_US = (100, 5_000)


@dataclass(slots=True)
class Doom:
    """The process dies in the middle of a turn: after it sent so many things as controller."""

    steps: int
    then: Callable[[], None]


class FrameCutter:
    """Cuts a stream into frames at their four-byte sizes."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[bytes]:
        if not self._rest and int.from_bytes(data[:SIZE_BYTES], "big") == len(data) - SIZE_BYTES:
            return [data[SIZE_BYTES:]]
        self._rest += data
        frames = []
        while len(self._rest) >= SIZE_BYTES:
            end = SIZE_BYTES + int.from_bytes(self._rest[:SIZE_BYTES], "big")
            if len(self._rest) < end:
                break
            frames.append(self._rest[SIZE_BYTES:end])
            self._rest = self._rest[end:]
        return frames


class ServerEnd:
    """A client's connection, on the broker's side."""

    def __init__(self, broker: "SimBroker", number: int, peer: str) -> None:
        self.host = broker.host
        self.peer = peer
        self.broker = broker
        self.number = number
        self.connection: Connection | None = None
        self._cutter = FrameCutter()

    def bind(self, connection: Connection) -> None:
        self.connection = connection

    def received(self, data: bytes) -> None:
        for frame in self._cutter.feed(data):
            self.broker.enter(partial(self.broker.request_came, self.number, frame))

    def lost(self, reason: str) -> None:
        self.broker.enter(partial(self.broker.client_lost, self.number))


class LinkEnd:
    """A connection to a peer, on the side that opened it."""

    def __init__(self, broker: "SimBroker", link: int) -> None:
        self.host = broker.host
        self.broker = broker
        self.link = link
        self.connection: Connection | None = None
        self._cutter = FrameCutter()

    def bind(self, connection: Connection) -> None:
        self.connection = connection

    def received(self, data: bytes) -> None:
        for frame in self._cutter.feed(data):
            self.broker.enter(partial(self.broker.peer_answered, self, frame))

    def lost(self, reason: str) -> None:
        self.broker.enter(partial(self.broker.peer_lost, self, reason))


class SimBroker:
    """One process: it lives, pauses, dies and is started again on the same disk."""

    def __init__(
        self,
        world: World,
        network: Network,
        zookeeper: ZooKeeperService,
        config: BrokerConfig,
        disk: Disks,
    ) -> None:
        self.world = world
        self.network = network
        self.zookeeper = zookeeper
        self.config = config
        self.disk = disk
        self.clock = SimClock(world)
        self.host = config.listeners.listeners[0].host
        self.port = config.listeners.listeners[0].port
        self.is_running = False
        self.is_paused = False
        self.life = 0
        self.awake_since_us = 0
        self.exit: Exit | None = None
        self.node: Node
        self.on_turn: Callable[[SimBroker], None] | None = None
        self.on_answer: Callable[[SimBroker, str], None] | None = None
        """Called with whom the broker answers, before it does."""
        self.doom: Doom | None = None
        self.calls: Counter[int] = Counter()
        """How often each API was asked, by its key."""
        self._kept_session: int | None = None
        """What a file in the log directory tells the next process of this one's session."""
        self._guard: SimGuard | None = None
        self._clients: dict[int, ServerEnd] = {}
        self._links: dict[int, LinkEnd] = {}
        self._next_client = 0
        self._inbox: list[Callable[[], None]] = []
        self._tick_at_ms: int | None = None

    # -- life --------------------------------------------------------------------------------

    def start(self) -> None:
        """A new process on what the disk holds."""
        assert not self.is_running, "a process is started once"
        self.life += 1
        self.is_running = True
        self.is_paused = False
        self.exit = None
        self._clients, self._links, self._inbox = {}, {}, []
        self._tick_at_ms = None
        self._guard = None
        self.awake_since_us = self.world.now_us
        self.node = Node(self.config, self.clock, self.disk, Random(self.world.chance.getrandbits(64)))
        self.node.start()
        self.world.tell(f"broker {self.config.broker_id} starts")
        self.zookeeper.open(self, self.config.zookeeper.zookeeper_session_timeout_ms)

    def kill(self, *, with_guard: bool = False) -> None:
        """kill -9: the process is gone, its disk stays as it is; the guard acts unless it is killed, too."""
        if self.is_running:
            self.world.tell(f"broker {self.config.broker_id} is killed")
            self._gone()
            self.zookeeper.process_died(self)
            if self._guard is not None and not with_guard:
                self._guard.wake()

    def lose_power(self) -> None:
        """What was not flushed may be gone, in whole or in part; only for a process that is dead."""
        assert not self.is_running, "the process died with the machine"
        self.disk.power_cut()

    def wipe(self) -> None:
        """The disks were replaced by empty ones; only for a process that is dead."""
        assert not self.is_running, "disks are changed while the machine is off"
        self.disk.wipe()
        self._kept_session = None

    def _gone(self) -> None:
        self.is_running = False
        self.life += 1
        self.doom = None
        self.disk.kill()
        self.network.stop_listening(self.host, self.port)
        self.network.host_died(self.host)

    def pause(self) -> None:
        """SIGSTOP: what arrives waits."""
        self.world.tell(f"broker {self.config.broker_id} is paused")
        self.is_paused = True
        self.is_running = False
        if self._guard is not None:
            self._guard.wake()

    def resume(self) -> None:
        """SIGCONT: what waited happens now, late."""
        self.world.tell(f"broker {self.config.broker_id} goes on")
        self.is_paused = False
        self.is_running = True
        self.awake_since_us = self.world.now_us
        inbox, self._inbox = self._inbox, []
        for run in inbox:
            self.enter(run)

    def shut_down(self) -> None:
        """SIGTERM."""
        self.world.tell(f"broker {self.config.broker_id} is asked to end")
        self.enter(self.node.begin_shutdown)

    # -- turns -------------------------------------------------------------------------------

    def enter(self, run: Callable[[], None]) -> None:
        """Let something happen to the process, if it lives."""
        if self.is_paused:
            self._inbox.append(run)
        elif self.is_running:
            run()
            self._end_turn()

    def _later(self, delay_us: int, run: Callable[[], None]) -> None:
        life = self.life

        def due() -> None:
            if self.life == life:
                self.enter(run)

        self.world.after(delay_us, due)

    def _end_turn(self) -> None:
        while self.is_running and (outputs := self.node.take_outputs()):
            for output in outputs:
                if self.doom is not None and self._dies_before(output, self.doom):
                    return
                self._perform(output)
        if self.is_running:
            self._aim()
            if self.on_turn is not None:
                self.on_turn(self)

    def _dies_before(self, output: Output, doom: Doom) -> bool:
        if not isinstance(output, SubmitToZooKeeper | SendOnLink) or not self.node.controller.is_active:
            return False
        doom.steps -= 1
        if doom.steps > 0:
            return False
        self.doom = None
        self.world.tell(f"broker {self.config.broker_id} dies in mid-turn, before {type(output).__name__}")
        self.kill()
        doom.then()
        return True

    def _aim(self) -> None:
        deadline_ms = self.node.next_deadline_ms()
        if deadline_ms is None or (self._tick_at_ms is not None and self._tick_at_ms <= deadline_ms):
            return
        self._tick_at_ms = deadline_ms

        def tick() -> None:
            if self._tick_at_ms == deadline_ms:
                self._tick_at_ms = None
                self.node.on_tick()

        self._later(deadline_ms * MILLISECOND - self.world.now_us, tick)

    def _perform(self, output: Output) -> None:
        match output:
            case Write():
                end = self._clients.get(output.connection)
                if end is not None and self.on_answer is not None:
                    self.on_answer(self, end.peer)
                self._send(end, output.parts)
            case SendOnLink():
                self._send(self._links.get(output.link), output.parts)
            case Close():
                client = self._clients.pop(output.connection, None)
                if client is not None and client.connection is not None:
                    client.connection.close(client)
                    self.node.on_client_lost(output.connection)
            case OpenLink():
                self._open_link(output)
            case CloseLink():
                link = self._links.pop(output.link, None)
                if link is not None and link.connection is not None:
                    link.connection.close(link)
            case SubmitToZooKeeper():
                self.zookeeper.submit(self, output.token, output.operation)
            case RunInThread():
                self._later(self.world.between(*WORK_US), partial(self._work, output))
            case AcceptClients():
                self.network.listen(self.host, self.port, self._accept)
            case RefuseClients():
                self.network.stop_listening(self.host, self.port)
            case Exit():
                self._exit(output)
            case KeepSession():
                self._keep_session(output)
            case EndKeptSession():
                if output.session_id == self._kept_session:
                    self.zookeeper.end_of_dead(output.session_id)
            case TakeHeld():
                self.node.on_held(output.connection)
            case PauseReading() | ResumeReading() | LimitFrames():
                pass

    def _keep_session(self, output: KeepSession) -> None:
        session = self.zookeeper.session_of(self)
        self._kept_session = session.number if session is not None else None
        if session is not None and self.config.zookeeper.ottla_guard_enable:
            self._guard = SimGuard(self.world, self.network, self.zookeeper, self, session.number)
            self._guard.tell(output.broker_id, output.epoch)

    @staticmethod
    def _send(end: ServerEnd | LinkEnd | None, parts: list[Any]) -> None:
        if end is not None and end.connection is not None:
            end.connection.send(end, b"".join(parts))

    def _work(self, output: RunInThread) -> None:
        try:
            outcome = output.work()
        except (OSError, ValueError, RuntimeError, LogDirectoryFailed, CannotStart) as error:
            outcome = error
        self.node.on_work_done(output.token, outcome)

    def _exit(self, output: Exit) -> None:
        self.world.tell(f"broker {self.config.broker_id} ends code={output.code} reason={output.reason}")
        self.exit = output
        self.zookeeper.close(self)
        self._gone()

    # -- connections -------------------------------------------------------------------------

    def _accept(self, host: str) -> ServerEnd | None:
        if not (self.is_running or self.is_paused):
            return None
        self._next_client += 1
        end = self._clients[self._next_client] = ServerEnd(self, self._next_client, host)
        number = self._next_client
        self.enter(lambda: self.node.on_client_connected(number, "PLAINTEXT", host))
        return end

    def request_came(self, number: int, frame: bytes) -> None:
        if number in self._clients:
            self.calls[int.from_bytes(frame[:2], "big")] += 1
            self.node.on_request(number, memoryview(bytearray(frame)))

    def client_lost(self, number: int) -> None:
        if self._clients.pop(number, None) is not None:
            self.node.on_client_lost(number)

    def _open_link(self, output: OpenLink) -> None:
        end = self._links[output.link] = LinkEnd(self, output.link)
        life = self.life

        def connected(connection: Connection) -> None:
            if self.life != life or self._links.get(output.link) is not end:
                connection.close(end)
                return
            end.bind(connection)
            self.enter(lambda: self.node.on_peer_connected(output.link))

        def refused(reason: str) -> None:
            if self.life == life:
                self.enter(partial(self.peer_lost, end, reason))

        self.network.connect(end, output.host, output.port, connected, refused)

    def peer_answered(self, end: LinkEnd, frame: bytes) -> None:
        if self._links.get(end.link) is end:
            self.node.on_peer_frame(end.link, memoryview(bytearray(frame)))

    def peer_lost(self, end: LinkEnd, reason: str) -> None:
        if self._links.get(end.link) is end:
            del self._links[end.link]
            self.node.on_peer_lost(end.link, reason)

    # -- ZooKeeper ---------------------------------------------------------------------------

    def on_zk_event(self, event: Any) -> None:
        if isinstance(event, WatchEvent):
            self.enter(lambda: self.node.on_zk_watch(event))
        else:
            self.enter(lambda: self.node.on_zk_session(event))

    def on_zk_result(self, token: int, result: Any) -> None:
        self.enter(lambda: self.node.on_zk_result(token, result))
