"""Two servers that get the same requests and must give the same answers and events, down to their zxids."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from typing import Any

from support.zookeeper.raw import (
    CLOSE,
    DELETE,
    GET_CHILDREN,
    SET_ACL,
    SET_DATA,
    SET_WATCHES_2,
    WORLD,
    Answers,
    RawClient,
    Wire,
    acl_bytes,
    integer,
    long,
    text,
)

SUPER = b"super:secret"
SUPER_DIGEST = f"super:{base64.b64encode(hashlib.sha1(SUPER).digest()).decode()}"

Open = Callable[[], Wire]


class Side:
    """One of the servers, and the clients of it."""

    def __init__(self, name: str, wire: Open) -> None:
        self.name = name
        self._open = wire
        self._wires: list[Wire] = []
        self.answers = Answers()
        self.clients: dict[int, RawClient] = {}
        self.admin = RawClient(self.wire())
        assert self.admin.connect()
        assert self.admin.log_in("digest", SUPER) == (0, 0, b"")
        self._wipe("/")
        for path in ("/", "/zookeeper", "/zookeeper/quota"):
            self.admin.ask(SET_ACL, text(path) + acl_bytes(WORLD) + integer(-1))
            self.admin.ask(SET_DATA, text(path) + text(b"") + integer(-1))
        config_acl = acl_bytes(((1, "world", "anyone"),))
        self.admin.ask(SET_ACL, text("/zookeeper/config") + config_acl + integer(-1))
        last = self.admin.ping()
        assert last is not None
        self.answers.base_zxid = last.zxid

    def wire(self) -> Wire:
        """Another connection."""
        self._wires.append(self._open())
        return self._wires[-1]

    def _wipe(self, path: str) -> None:
        """Every test begins with what a new server has."""
        listed = self.answers.read(GET_CHILDREN, self.admin.ask(GET_CHILDREN, text(path) + b"\0"))
        for name in listed[2] if listed[0] == 0 else []:
            below = f"{path.rstrip('/')}/{name}"
            self._wipe(below)
            self.admin.ask(DELETE, text(below) + integer(-1))

    def open(self, number: int, **options: Any) -> tuple[bool, int]:
        """A new client under this number; whether it got a session, and its time-out."""
        client = RawClient(self.wire())
        is_granted = client.connect(**options)
        self.answers.sessions[client.session] = number
        self.clients[number] = client
        return is_granted, client.timeout_ms

    def resume(self, number: int, last_zxid: int, timeout_ms: int = 30_000) -> Any:
        """The same session over another connection."""
        client = self.clients[number]
        client.wire.close()
        client.wire = self.wire()
        since = last_zxid and last_zxid + self.answers.base_zxid
        return client.connect(timeout_ms, since), client.timeout_ms

    def expire(self, number: int, last_zxid: int) -> Any:
        """Let a session time out: it is resumed with the least time, then silent until its end."""
        resumed = self.resume(number, last_zxid, timeout_ms=1)
        client = self.clients.pop(number)
        assert client.wire.frame() is None, "nothing but the end comes to a client that is silent"
        client.wire.close()
        return resumed, self.heard()

    def log_in(self, number: int, scheme: str, credential: bytes) -> Any:
        return self.clients[number].log_in(scheme, credential)

    def watch_again(self, number: int, since: int, paths: bytes) -> Any:
        """Name watches after a return."""
        return self.ask(number, SET_WATCHES_2, long(since + self.answers.base_zxid) + paths)

    def ask(self, number: int, op: int, body: bytes) -> Any:
        """The answer in comparable form, and what each client was told."""
        answer = self.answers.read(op, self.clients[number].ask(op, body))
        return answer, self.heard(number if answer != "hung up" else None)

    def heard(self, asked: int | None = None) -> list[Any]:
        """What each client was told since it was asked last."""
        for number, client in self.clients.items():
            if number != asked:
                client.ping()
        self.admin.ping()  # Else its session would end in the midst of a long test, and take a zxid.
        return [self.answers.events(client) for client in self.clients.values()]

    def end(self, number: int) -> Any:
        """Close a session in order."""
        client = self.clients.pop(number)
        answer = self.answers.read(CLOSE, client.ask(CLOSE))
        client.wire.close()
        return answer, self.answers.events(client), self.heard()

    def close(self) -> None:
        for client in [*self.clients.values(), self.admin]:
            if client.ask(CLOSE) is None and client.session:
                client.wire = self.wire()  # else the session would end in the midst of another test
                if client.connect():
                    client.ask(CLOSE)
        for wire in self._wires:
            wire.close()


class Pair:
    """Both, in step."""

    def __init__(self, apache: Open, ours: Open) -> None:
        self.sides = [Side("Apache's", apache), Side("ours", ours)]
        self.history: list[object] = []

    def same(self, do: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Do it on both; they must agree."""
        what = (do.__name__, *arguments)
        self.history.append(what)
        theirs, ours = (do(side, *arguments, **options) for side in self.sides)
        assert ours == theirs, f"after {len(self.history)} steps: {what}\nours: {ours}\nApache's: {theirs}"
        return ours

    def close(self) -> None:
        for side in self.sides:
            side.close()
