"""A small client that speaks exactly what a test says, byte for byte if need be."""

from __future__ import annotations

import socket
import struct
from types import TracebackType
from typing import Any, Self

from ottla.wire.apis import message_classes
from ottla.wire.headers import decode_response, frame_request
from ottla.wire.keys import ApiKey


class WireClient:
    """One connection to a broker."""

    def __init__(
        self, address: str, seconds_max: float = 60, client_id: str = "wire", source: str = ""
    ) -> None:
        """``source`` is the address to come from, if this machine has several."""
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), seconds_max, (source, 0))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._correlation_id = 0
        self._client_id = client_id

    @property
    def socket(self) -> socket.socket:
        """For those who wait for several clients at once."""
        return self._socket

    def send_bytes(self, data: bytes) -> None:
        """Send this as it is."""
        self._socket.sendall(data)

    def send(self, message: Any, version: int) -> int:
        """Send a request; its correlation id."""
        self._correlation_id += 1
        self.send_bytes(b"".join(frame_request(message, version, self._correlation_id, self._client_id)))
        return self._correlation_id

    def read_frame(self) -> bytes | None:
        """The next frame without its size; None when the broker has hung up."""
        head = self._read(4)
        return None if head is None else self._read(struct.unpack(">i", head)[0])

    def _read(self, count: int) -> bytes | None:
        data = b""
        while len(data) < count:
            try:
                chunk = self._socket.recv(count - len(data))
            except ConnectionResetError:
                return None
            if not chunk:
                return None
            data += chunk
        return data

    def ask(self, message: Any, version: int) -> Any:
        """Send a request and take its answer."""
        self.send(message, version)
        return self.answer(message, version)

    def answer(self, message: Any, version: int) -> Any:
        """Take the answer to the request that was sent last."""
        frame = self.read_frame()
        assert frame is not None, "the broker hung up instead of answering"
        answered, body = decode_response(message_classes(ApiKey(message.spec.api_key))[1], version, frame)
        assert answered == self._correlation_id, "answers come in order"
        return body

    @property
    def is_hung_up_on(self) -> bool:
        """Whether the broker closes the connection (waits for it)."""
        return self.read_frame() is None

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
