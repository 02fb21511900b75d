"""A raw connection to a broker that tells an answer from a closed door and from silence."""

from __future__ import annotations

import select
import socket
import struct
from enum import Enum
from typing import Any

from ottla.wire.apis import message_classes
from ottla.wire.apis.api_versions import ApiVersionsRequest
from ottla.wire.fields import Request
from ottla.wire.headers import decode_response, frame_request
from ottla.wire.keys import ApiKey

HOST = "127.0.0.1"
ANSWER_SECONDS_MAX = 30.0
AFTERTHOUGHT_SECONDS = 0.3
_SIZE = struct.Struct(">i")


class Outcome(Enum):
    """What a broker can do other than answer."""

    CLOSED = "closed the connection"
    SILENT = "said nothing"


def _is_readable(connection: socket.socket, seconds_max: float) -> bool:
    return bool(select.select([connection], [], [], seconds_max)[0])


class Connection:
    """Opened at first use, and again after the broker closed it."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._socket: socket.socket | None = None
        self._correlation_id = 0

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def call(self, message: Request, version: int, client_id: str | None = "judge") -> Any:
        """Ask, and insist on an answer."""
        frame = self.exchange(self.framed(message, version, client_id))
        assert isinstance(frame, bytes), f"{type(message).__name__} v{version}: the broker {frame.value}"
        return self.decoded(message, version, frame)

    def framed(self, message: Request, version: int, client_id: str | None = "judge") -> bytes:
        self._correlation_id += 1
        return b"".join(frame_request(message, version, self._correlation_id, client_id))

    @staticmethod
    def decoded(message: Request, version: int, frame: bytes) -> Any:
        assert message.spec.api_key is not None, "a request has a key"
        response_class = message_classes(ApiKey(message.spec.api_key))[1]
        return decode_response(response_class, version, memoryview(frame))[1]

    def exchange(self, data: bytes, seconds_max: float = ANSWER_SECONDS_MAX) -> bytes | Outcome:
        """Send bytes as they are; the frame that comes back, without its size."""
        try:
            connection = self._open()
            connection.settimeout(ANSWER_SECONDS_MAX)
            connection.sendall(data)
            self._await_word(connection, seconds_max)
            (size,) = _SIZE.unpack(self._read(connection, _SIZE.size))
            return self._read(connection, size)
        except TimeoutError:
            self.close()
            return Outcome.SILENT
        except (ConnectionError, EOFError):
            self.close()
            return Outcome.CLOSED

    def _await_word(self, connection: socket.socket, seconds_max: float) -> None:
        """Until there is something to read. It is silence only if the broker answers others meanwhile: a
        machine that stood still has said nothing either."""
        if _is_readable(connection, seconds_max):
            return
        with Connection(self._port) as another:
            another.call(ApiVersionsRequest(), 0)
        if not _is_readable(connection, AFTERTHOUGHT_SECONDS):
            raise TimeoutError

    def send(self, data: bytes) -> None:
        """Send bytes to which no answer is due."""
        self._open().sendall(data)

    def _open(self) -> socket.socket:
        if self._socket is None:
            self._socket = socket.create_connection((HOST, self._port), timeout=10)
        return self._socket

    @staticmethod
    def _read(connection: socket.socket, size: int) -> bytes:
        content = b""
        while len(content) < size:
            piece = connection.recv(size - len(content))
            if not piece:
                raise EOFError
            content += piece
        return content
