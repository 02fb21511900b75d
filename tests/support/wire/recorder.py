"""A TCP proxy that keeps every frame that a client and a broker exchange.

The broker must advertise the recorder's port as its own, so that clients come back to it after Metadata.
"""

from __future__ import annotations

import socket
import struct
import threading
from contextlib import suppress
from dataclasses import dataclass, field

from support.processes.ports import free_port

HOST = "127.0.0.1"
_SIZE = struct.Struct(">i")


@dataclass(slots=True)
class Conversation:
    """One connection: the frames of both sides without their sizes, in order."""

    requests: list[bytes] = field(default_factory=list)
    responses: list[bytes] = field(default_factory=list)


class Recorder:
    """Listens on a free port and passes everything on to ``upstream_port``, which may be named later; a
    context manager."""

    def __init__(self, upstream_port: int = 0) -> None:
        self.port = free_port()
        self.upstream_port = upstream_port
        self.conversations: list[Conversation] = []
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._is_over = False
        self._listener = socket.create_server((HOST, self.port))

    def __enter__(self) -> Recorder:
        self._run(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._is_over = True
        for each in (self._listener, *self._sockets):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(60)
        for each in (self._listener, *self._sockets):
            each.close()

    def _run(self, target: object, *args: object) -> None:
        thread = threading.Thread(target=target, args=args, daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                broker = socket.create_connection((HOST, self.upstream_port), timeout=10)
                broker.settimeout(None)
            except OSError:
                client.close()
                continue
            with self._lock:
                if self._is_over:
                    client.close()
                    broker.close()
                    return
                conversation = Conversation()
                self.conversations.append(conversation)
                self._sockets += [client, broker]
                self._run(_pass_on, client, broker, conversation.requests)
                self._run(_pass_on, broker, client, conversation.responses)


def _pass_on(source: socket.socket, target: socket.socket, frames: list[bytes]) -> None:
    """Frames are kept before they go on: an answer is never known before its request."""
    unread = b""
    while data := _received(source):
        unread += data
        while len(unread) >= _SIZE.size:
            size = _SIZE.unpack_from(unread)[0]
            if len(unread) < _SIZE.size + size:
                break
            frames.append(unread[_SIZE.size : _SIZE.size + size])
            unread = unread[_SIZE.size + size :]
        try:
            target.sendall(data)
        except OSError:
            break
    for each in (source, target):
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)


def _received(source: socket.socket) -> bytes:
    try:
        return source.recv(1 << 16)
    except OSError:
        return b""
