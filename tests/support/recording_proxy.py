"""A proxy that keeps both halves of every conversation that passes through it."""

from __future__ import annotations

import contextlib
import socket
import threading
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from support.ports import free_port


@dataclass
class Conversation:
    """One connection: what the client said and what the server said."""

    said: bytearray = field(default_factory=bytearray)
    answered: bytearray = field(default_factory=bytearray)


class RecordingProxy:
    """Listens on a free port of the loopback and passes all to ``target_port``."""

    def __init__(self) -> None:
        self.port = free_port()
        self.target_port = 0
        self.conversations: list[Conversation] = []
        self._listener = socket.create_server(("127.0.0.1", self.port))
        self._sockets: list[socket.socket] = [self._listener]
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._is_over = False

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._is_over = True
        for sock in self._sockets:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(60)
        for sock in self._sockets:
            sock.close()

    def _start(self, target: object, *args: object) -> None:
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
                server = socket.create_connection(("127.0.0.1", self.target_port))
            except OSError:
                client.close()
                continue
            with self._lock:
                if self._is_over:
                    client.close()
                    server.close()
                    return
                self._sockets += (client, server)
                conversation = Conversation()
                self.conversations.append(conversation)
                self._start(self._pass_on, client, server, conversation.said)
                self._start(self._pass_on, server, client, conversation.answered)

    def _pass_on(self, source: socket.socket, sink: socket.socket, record: bytearray) -> None:
        try:
            while data := source.recv(1 << 16):
                record += data
                sink.sendall(data)
        except OSError:
            return
        finally:
            with contextlib.suppress(OSError):
                sink.shutdown(socket.SHUT_WR)
