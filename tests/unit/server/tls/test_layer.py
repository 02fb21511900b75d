"""The TLS layer between a socket and a client's connection, without either."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from ottla.config.tls.contexts import client_context, read_material
from ottla.config.tls.settings import TlsSettings, read_tls
from ottla.security.tls.session import TlsSession
from ottla.server.tls.doors import TlsDoors
from ottla.server.tls.layer import TlsLayer
from support.security.tls import authority, files_in


class Timers:
    """A loop of which only the clock is used: nothing goes off by itself."""

    def __init__(self) -> None:
        self.due: list[Callable[[], None]] = []
        self.soon: list[Callable[[], None]] = []

    def call_later(self, _seconds: float, what: Callable[[], None]) -> Timers:
        self.due.append(what)
        return self

    def cancel(self) -> None:
        self.due.clear()

    def call_soon(self, what: Callable[[], None]) -> None:
        self.soon.append(what)


class Socket:
    """The transport below."""

    def __init__(self) -> None:
        self.sent = b""
        self.end = ""
        self.is_reading = True

    def write(self, data: bytes) -> None:
        assert not self.end, "nothing is sent behind the end"
        self.sent += data

    def is_closing(self) -> bool:
        return bool(self.end)

    def close(self) -> None:
        self.end = self.end or "closed"

    def abort(self) -> None:
        self.end = self.end or "aborted"

    def pause_reading(self) -> None:
        self.is_reading = False

    def resume_reading(self) -> None:
        self.is_reading = True

    def take(self) -> bytes:
        sent, self.sent = self.sent, b""
        return sent


class Above:
    """The connection above."""

    def __init__(self) -> None:
        self.transport: TlsLayer
        self.heard: list[str] = []
        self.data = b""
        self._room = bytearray(8)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(TlsLayer, transport)
        self.heard.append("connected")

    def secured(self, certificate: bytes | None) -> None:
        self.heard.append("secured" if certificate is None else "secured with certificate")

    def handshake_failed(self, reason: str) -> None:
        self.heard.append(reason)

    def get_buffer(self, _sizehint: int) -> memoryview:
        return memoryview(self._room)

    def buffer_updated(self, count: int) -> None:
        self.data += self._room[:count]

    def connection_lost(self, _why: Exception | None) -> None:
        self.heard.append("lost")


class Line:
    """A layer, what is above and below it, and a client at the other end."""

    def __init__(self, settings: TlsSettings) -> None:
        self.timers, self.socket, self.above = Timers(), Socket(), Above()
        doors = TlsDoors({"T": settings})
        self.layer = TlsLayer(cast(Any, self.timers), lambda: doors.server("T"), cast(Any, self.above))
        self.client = TlsSession(client_context(settings, read_material(settings)), "localhost")
        self.layer.connection_made(cast(Any, self.socket))

    def arrives(self, data: bytes) -> None:
        buffer = self.layer.get_buffer(-1)
        buffer[: len(data)] = data
        self.layer.buffer_updated(len(data))

    def shake_hands(self) -> None:
        for _ in range(3):
            self.client.handshake()
            if data := self.client.take():
                self.arrives(data)
            self.client.received(self.socket.take())
        assert self.client.is_ready

    def sends(self, *parts: bytes) -> None:
        for piece in self.client.encrypt(parts):
            self.arrives(piece)

    def reads(self) -> bytes:
        self.client.received(self.socket.take())
        buffer = bytearray(1000)
        return bytes(buffer[: self.client.read_into(memoryview(buffer))])


@pytest.fixture
def settings(tmp_path: Path) -> TlsSettings:
    given = {name: str(value) for name, value in files_in(tmp_path).settings.items()}
    return read_tls(given.get, [])


def test_a_client_is_known_when_it_connects_and_secured_after_the_handshake(settings: TlsSettings) -> None:
    line = Line(settings)
    assert line.above.heard == ["connected"]

    line.shake_hands()

    assert line.above.heard == ["connected", "secured"]
    assert line.timers.due == [], "the handshake is no longer waited for"


def test_plain_bytes_go_both_ways(settings: TlsSettings) -> None:
    line = Line(settings)
    line.shake_hands()

    line.sends(b"more than the connection has room for at once")
    line.above.transport.writelines([b"an ", b"answer"])

    assert line.above.data == b"more than the connection has room for at once"
    assert line.reads() == b"an answer"


def test_bytes_one_by_one_are_as_good(settings: TlsSettings) -> None:
    line = Line(settings)
    line.client.handshake()
    for byte in line.client.take():
        line.arrives(bytes([byte]))
    line.client.received(line.socket.take())
    line.client.handshake()
    for byte in line.client.take() + b"".join(line.client.encrypt([b"hello"])):
        line.arrives(bytes([byte]))

    assert line.above.data == b"hello"


@pytest.mark.parametrize("first", [b"\x00\x00\x00\x14\x00\x12", b"GET / HTTP/1.1\r\n\r\n"])
def test_who_does_not_speak_tls_is_told_of_and_hears_nothing(settings: TlsSettings, first: bytes) -> None:
    line = Line(settings)

    line.arrives(first)

    assert line.above.heard[1:] == ["this listener speaks TLS, the client does not: its security.protocol"]
    assert (line.socket.sent, line.socket.end) == (b"", "closed")


def test_who_does_not_end_the_handshake_is_hung_up_on(settings: TlsSettings) -> None:
    line = Line(settings)
    line.client.handshake()
    line.arrives(line.client.take()[:20])

    line.timers.due[0]()

    assert line.socket.end == "closed"
    assert "no TLS handshake within" in line.above.heard[-1]


def test_a_handshake_without_end_is_cut(settings: TlsSettings) -> None:
    line = Line(settings)
    record = b"\x16\x03\x03\x40\x00" + b"\x01\x03\xff\xff" + bytes(0x4000 - 4)

    for _ in range(20):
        line.arrives(record)

    assert line.socket.end == "closed"
    assert len(line.above.heard) == 2


def test_garbage_behind_the_handshake_ends_the_connection(settings: TlsSettings) -> None:
    line = Line(settings)
    line.shake_hands()

    line.arrives(b"\x17\x03\x03\x00\x20" + bytes(32))

    assert line.socket.end == "aborted"


def test_who_does_not_want_to_read_gets_the_rest_when_he_does(settings: TlsSettings) -> None:
    line = Line(settings)
    line.shake_hands()

    line.above.transport.pause_reading()
    line.sends(b"later")
    assert line.above.data == b""
    assert not line.socket.is_reading
    line.above.transport.resume_reading()
    line.timers.soon[0]()

    assert line.above.data == b"later"
    assert line.socket.is_reading


def test_each_side_tells_the_other_of_the_end(settings: TlsSettings) -> None:
    ours, theirs = Line(settings), Line(settings)
    ours.shake_hands()
    theirs.shake_hands()

    ours.above.transport.close()
    theirs.client.end()
    theirs.arrives(theirs.client.take())

    assert ours.reads() == b""
    assert ours.client.is_ended
    assert (ours.socket.end, theirs.socket.end) == ("closed", "closed")


def test_a_store_that_was_replaced_counts_for_the_next_client(settings: TlsSettings, tmp_path: Path) -> None:
    doors = TlsDoors({"T": settings})
    before = doors.server("T")
    doors.look({"T": settings})
    assert doors.server("T") is before

    (tmp_path / "broker.pem").rename(tmp_path / "old.pem")
    files_in(tmp_path)
    doors.look({"T": settings})

    assert doors.server("T") is not before


def test_one_that_cannot_be_read_leaves_the_old_one_in_place(
    settings: TlsSettings, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    doors = TlsDoors({"T": settings})
    before = doors.server("T")
    (tmp_path / "broker.pem").rename(tmp_path / "away.pem")
    (tmp_path / "broker.pem").write_text("nothing")

    doors.look({"T": settings})
    doors.look({"T": settings})

    assert doors.server("T") is before
    assert caplog.text.count("the old ones stay listener=T") == 1
    assert isinstance(doors.client("T"), ssl.SSLContext)
    assert doors.client("OTHER") is None


def test_settings_that_changed_count_for_the_next_client(settings: TlsSettings) -> None:
    doors = TlsDoors({"T": settings})
    before = doors.server("T")

    doors.look({"T": replace(settings, client_auth="required")})

    assert doors.server("T") is not before
    assert doors.server("T").verify_mode is ssl.CERT_REQUIRED


@pytest.mark.parametrize(
    ("days", "told"),
    [(40, ""), (10, "of a listener ends in 10 days listener=T"), (0, "has ended listener=T")],
)
def test_a_certificate_that_ends_soon_is_told_of(
    settings: TlsSettings, tmp_path: Path, caplog: pytest.LogCaptureFixture, days: int, told: str
) -> None:
    (tmp_path / "broker.pem").write_text(authority().issue("broker", ["localhost"], days=days).both)
    doors = TlsDoors({"T": settings})

    doors.warn_of_ends()

    assert told in caplog.text
    assert bool(told) == bool(caplog.text)
    in_days = (doors.ends()["T"] - time.time()) / 86_400
    assert days - 1 < in_days <= days
