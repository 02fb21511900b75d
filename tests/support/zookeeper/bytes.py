"""A session machine in a test's hand: a clock, a scripted server, and what went over the wire."""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass
from typing import Any

from ottla.zookeeper.connect_string import parse_connect_string
from ottla.zookeeper.ops import Result, Stat, WatchKind
from ottla.zookeeper.protocol import OpCode
from ottla.zookeeper.session import (
    CloseConnection,
    Completed,
    Event,
    OpenConnection,
    Session,
    SessionConfig,
    State,
)

SESSION_ID = 0x7A7A
PASSWORD = b"p" * 16
TIMEOUT_MS = 6_000


def a_stat(**fields: int) -> Stat:
    """A stat of noughts, but for what is given."""
    return Stat(**{name: fields.get(name, 0) for name in Stat.__struct_fields__})


def stat_bytes(stat: Stat | None = None) -> bytes:
    """As the server writes it."""
    stat = stat or a_stat()
    return struct.pack(">qqqqiiiqiiq", *(getattr(stat, name) for name in Stat.__struct_fields__))


def text_bytes(text: str) -> bytes:
    """A counted text."""
    return struct.pack(">i", len(text.encode())) + text.encode()


def buffer_bytes(data: bytes | None) -> bytes:
    """A counted buffer."""
    return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data


def frame(body: bytes) -> bytes:
    """With its length before it."""
    return struct.pack(">i", len(body)) + body


def connect_reply(
    session_id: int = SESSION_ID, timeout_ms: int = TIMEOUT_MS, *, is_read_only: bool = False
) -> bytes:
    """The server's first frame; an expired session has id 0."""
    body = struct.pack(">iiq", 0, timeout_ms, session_id) + buffer_bytes(PASSWORD)
    return frame(body + (b"\1" if is_read_only else b"\0"))


def reply(xid: int, body: bytes = b"", *, zxid: int = 1, code: int = 0) -> bytes:
    """The answer to a request."""
    return frame(struct.pack(">iqi", xid, zxid, code) + body)


def notification(kind: WatchKind, path: str, zxid: int = -1) -> bytes:
    """A watch fires."""
    return reply(-1, struct.pack(">ii", kind, 3) + text_bytes(path), zxid=zxid)


def data_body(data: bytes | None, stat: Stat | None = None) -> bytes:
    """The answer to GetData."""
    return buffer_bytes(data) + stat_bytes(stat)


@dataclass(frozen=True, slots=True)
class SentRequest:
    """What the client put on the wire."""

    xid: int
    code: int
    body: bytes


class Wire:
    """A session whose connections, clock and server are played by a test."""

    def __init__(self, connect_string: str = "zk:2181", *, seed: int = 1, **options: Any) -> None:
        config = SessionConfig(
            ensemble=parse_connect_string(connect_string),
            **{"session_timeout_ms": TIMEOUT_MS, **options},
        )
        self.session = Session(config, random.Random(seed))
        self.now_ms = 1_000_000
        self.log: list[Event] = []
        self._told = 0
        self.connects: list[tuple[int, int]] = []
        """Last zxid seen and session id of every connect request."""

    def start(self) -> Wire:
        self.session.start(self.now_ms)
        return self

    def accept(self) -> None:
        """The server takes the connection; its connect request is noted."""
        self.session.connection_made(self.now_ms)
        data = self.session.bytes_to_send(self.now_ms)
        _, _, zxid, _, session_id = struct.unpack_from(">iiqiq", data)
        self.connects.append((zxid, session_id))

    def connect(self, **options: Any) -> Wire:
        """From nothing to a session in use."""
        self.start()
        self.accept()
        self.server_sends(connect_reply(**options))
        return self

    def reconnect(self, session_id: int = SESSION_ID) -> list[SentRequest]:
        """After a loss: wait for the next attempt, let it succeed; what the client sends first."""
        self.run_until_attempt()
        self.accept()
        self.server_sends(connect_reply(session_id))
        return self.sent()

    def run_until_attempt(self) -> OpenConnection:
        """Tick until the machine wants to connect."""
        while self.session.state is not State.CONNECTING:
            due = self.session.next_tick_ms()
            assert due is not None, "the machine waits for nothing"
            self.now_ms = max(self.now_ms, due)
            self.session.tick(self.now_ms)
        self.take()
        return [event for event in self.log if isinstance(event, OpenConnection)][-1]

    def server_sends(self, data: bytes) -> None:
        self.session.receive_bytes(data, self.now_ms)

    def cut(self, reason: str = "cut") -> None:
        self.session.connection_lost(reason, self.now_ms)

    def pass_ms(self, ms: int) -> None:
        self.now_ms += ms
        self.session.tick(self.now_ms)

    def sent(self) -> list[SentRequest]:
        """The requests that the client sends now."""
        data = self.session.bytes_to_send(self.now_ms)
        requests, position = [], 0
        while position < len(data):
            size, xid, code = struct.unpack_from(">iii", data, position)
            requests.append(SentRequest(xid, code, data[position + 12 : position + 4 + size]))
            position += 4 + size
        return requests

    def take(self) -> list[Event]:
        """The events since the last call; all are kept in ``log`` too."""
        events = self.session.events()
        self.log += events
        return events

    def results(self) -> dict[object, Result]:
        """All outcomes so far, by token."""
        self.take()
        return {event.token: event.result for event in self.log if isinstance(event, Completed)}

    def told(self) -> list[Event]:
        """What the application heard since the last call: no connections, no completions."""
        self.take()
        news, self._told = self.log[self._told :], len(self.log)
        return [e for e in news if not isinstance(e, OpenConnection | CloseConnection | Completed)]


def codes(requests: list[SentRequest]) -> list[int]:
    """The kinds of requests, pings included."""
    return [OpCode(request.code) for request in requests]
