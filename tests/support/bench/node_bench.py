"""A real node on a bench: ZooKeeper and disk in memory, time by hand, outputs carried out at once."""

from __future__ import annotations

from random import Random
from typing import Any

from ottla.broker.node import Node
from ottla.broker.outputs import (
    AcceptClients,
    Close,
    CloseLink,
    Exit,
    OpenLink,
    Output,
    RefuseClients,
    RunInThread,
    SendOnLink,
    SubmitToZooKeeper,
    TakeHeld,
    Write,
)
from ottla.config.areas import BrokerConfig
from ottla.config.broker_file import read_broker_file
from ottla.sim.machine.zookeeper_server import Fired, ZooKeeperServer
from ottla.storage.directories.opening import CannotStart
from ottla.storage.disk.crash_disk import CrashDisk
from ottla.wire.apis import message_classes
from ottla.wire.codec import decode
from ottla.wire.headers import decode_request_header, decode_response, frame_request
from ottla.wire.keys import ApiKey
from ottla.zookeeper.ops import Op, Result, SessionConnected, SessionExpired

SESSION = 100
OPERATOR = 900
"""The session of whoever changes ZooKeeper behind the node's back."""


class HandClock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now_ms = 1_000

    def monotonic_ms(self) -> int:
        return self.now_ms

    def wall_ms(self) -> int:
        return 1_700_000_000_000 + self.now_ms


def a_config(**settings: object) -> BrokerConfig:
    """A sound config; settings by Kafka's name with ``_`` for ``.``."""
    properties = {
        "broker.id": "1",
        "listeners": "PLAINTEXT://one:9092",
        "zookeeper.connect": "zk:2181",
        "log.dirs": "/data",
        **{name.replace("_", "."): str(value) for name, value in settings.items()},
    }
    file = read_broker_file(properties)
    assert file.config is not None, file.problems
    return file.config


class Bench:
    """One node; what it asks for is done at once, unless a test holds it back."""

    def __init__(
        self,
        config: BrokerConfig | None = None,
        tree: ZooKeeperServer | None = None,
        disk: CrashDisk | None = None,
    ) -> None:
        self.clock = HandClock()
        self.tree = tree or ZooKeeperServer()
        self.disk = disk or CrashDisk(Random(1))
        self.node = Node(config or a_config(), self.clock, self.disk, Random(2))
        self.session = SESSION
        self.accepts = False
        self.exit: Exit | None = None
        self.written: list[Write] = []
        self.closed: list[Close] = []
        self.links: dict[int, OpenLink] = {}
        self.sent: list[SendOnLink] = []
        self.zk_log: list[Op] = []
        self.zk_is_held = False
        self.held: list[SubmitToZooKeeper] = []
        self._correlation_id = 0
        self._clients = 0

    # ---- life

    def start(self) -> Bench:
        """Start the node and let it come up."""
        if not self.tree.has_session(self.session):
            self.tree.open_session(self.session)
        if not self.tree.has_session(OPERATOR):
            self.tree.open_session(OPERATOR)
        self.node.start()
        self.node.on_zk_session(SessionConnected(self.session, True))
        self.settle()
        return self

    def expire_session(self, new_session: int) -> None:
        """ZooKeeper ends the session and grants another."""
        self.deliver(self.tree.end_session(self.session))
        self.node.on_zk_session(SessionExpired(self.session))
        self.settle()
        self.session = new_session
        self.tree.open_session(new_session)
        self.node.on_zk_session(SessionConnected(new_session, True))
        self.settle()

    def settle(self) -> None:
        """Carry out outputs until there are none."""
        while outputs := self.node.take_outputs():
            for output in outputs:
                self._perform(output)

    def advance(self, ms: int) -> None:
        """Let time pass, timer by timer."""
        end_ms = self.clock.now_ms + ms
        while (deadline := self.node.next_deadline_ms()) is not None and deadline <= end_ms:
            self.clock.now_ms = max(self.clock.now_ms, deadline)
            self.node.on_tick()
            self.settle()
        self.clock.now_ms = end_ms

    def _perform(self, output: Output) -> None:
        match output:
            case SubmitToZooKeeper():
                if self.zk_is_held:
                    self.held.append(output)
                else:
                    self.answer(output)
            case RunInThread():
                try:
                    outcome = output.work()
                except (OSError, RuntimeError, CannotStart) as error:
                    outcome = error
                self.node.on_work_done(output.token, outcome)
            case Write():
                self.written.append(output)
            case Close():
                self.closed.append(output)
            case OpenLink():
                self.links[output.link] = output
            case CloseLink():
                self.links.pop(output.link, None)
            case SendOnLink():
                self.sent.append(output)
            case AcceptClients():
                self.accepts = True
            case RefuseClients():
                self.accepts = False
            case TakeHeld():
                self.node.on_held(output.connection)
            case Exit():
                self.exit = self.exit or output
            case _:
                pass

    # ---- ZooKeeper

    def answer(self, submitted: SubmitToZooKeeper) -> None:
        """Let the tree answer one operation of the node."""
        self.zk_log.append(submitted.operation)
        result, fired = self.tree.apply(submitted.operation, self.session, self.clock.wall_ms())
        self.deliver(fired)
        self.node.on_zk_result(submitted.token, result)

    def deliver(self, fired: list[Fired]) -> None:
        """Hand the node's watch events over."""
        for session, event in fired:
            if session == self.session:
                self.node.on_zk_watch(event)

    def zk(self, op: Op) -> Result:
        """Somebody else does this in ZooKeeper."""
        result, fired = self.tree.apply(op, OPERATOR, self.clock.wall_ms())
        self.deliver(fired)
        self.settle()
        return result

    # ---- clients

    def connect(self, listener: str = "PLAINTEXT", host: str = "10.0.0.7") -> int:
        """A client's connection."""
        self._clients += 1
        self.node.on_client_connected(self._clients, listener, host)
        return self._clients

    def send(self, connection: int, message: Any, version: int) -> int:
        """Send a request; its correlation id."""
        self._correlation_id += 1
        frame = b"".join(frame_request(message, version, self._correlation_id, "bench"))[4:]
        self.node.on_request(connection, memoryview(bytearray(frame)))
        self.settle()
        return self._correlation_id

    def ask(self, message: Any, version: int, listener: str = "PLAINTEXT") -> Any:
        """Send a request on a connection of its own; the answer, which must have come at once."""
        connection = self.connect(listener)
        before = len(self.written)
        correlation_id = self.send(connection, message, version)
        frames = self.written[before:]
        assert len(frames) == 1, f"{len(frames)} writes answer the request"
        response = message_classes(ApiKey(message.spec.api_key))[1]
        answered, body = decode_response(response, version, b"".join(frames[0].parts)[4:])
        assert answered == correlation_id, "the answer belongs to the request"
        return body

    # ---- peers

    def peer_requests(self, message: Any) -> list[tuple[int, int, int, Any]]:
        """Requests of that kind sent on links: link, correlation id, version, body."""
        found = []
        for sent in self.sent:
            frame = b"".join(sent.parts)[4:]
            header, offset = decode_request_header(frame)
            if header.api_key == message.spec.api_key:
                body = decode(message, header.api_version, frame, offset)
                found.append((sent.link, header.correlation_id, header.api_version, body))
        return found
