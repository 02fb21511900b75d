"""TLS between a client's socket and its connection: towards asyncio a protocol, towards the connection a
transport.

asyncio's own layer tells of a client when its handshake is done. This one does when it connects, so that the
limits hold before the handshake; it sees what a client speaks that does not speak TLS, joins small parts into
one record, and shares one buffer for encrypted bytes among all connections.
"""

import asyncio
import ssl
from collections.abc import Callable
from typing import Any, Final, Protocol, cast

from ottla.broker.outputs import Buffer
from ottla.security.tls.session import TlsFailed, TlsSession

HANDSHAKE_SECONDS_MAX: Final = 20.0
"""Who has not finished the handshake by then is hung up on; Kafka waits until the connection is idle."""
_HANDSHAKE_BYTES_MAX: Final = 256 * 1024
"""What a client may send until then: certificates are large, but not that large."""
_RECORD_OF_A_HANDSHAKE: Final = 0x16
_shared = memoryview(bytearray(256 * 1024))
"""Filled and emptied within one turn of the loop."""


class Inner(Protocol):
    """The connection above."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None: ...

    def secured(self, certificate: bytes | None) -> None:
        """The handshake is done; this is the client's certificate, if it has shown one."""

    def handshake_failed(self, reason: str) -> None:
        """The handshake failed; the connection is closed next."""

    def get_buffer(self, sizehint: int) -> memoryview: ...

    def buffer_updated(self, count: int) -> None: ...

    def pause_writing(self) -> None: ...

    def resume_writing(self) -> None: ...

    def connection_lost(self, exc: Exception | None) -> None: ...


class TlsLayer(asyncio.BufferedProtocol, asyncio.Transport):
    """One connection's encryption."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, context: Callable[[], ssl.SSLContext], inner: Inner
    ) -> None:
        self._loop = loop
        self._inner = inner
        self._session = TlsSession(context())
        self._raw: asyncio.Transport
        self._handshake_bytes = 0
        self._is_reading = True
        self._limit: asyncio.TimerHandle | None = None

    # ---- from asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._raw = cast(asyncio.Transport, transport)
        self._limit = self._loop.call_later(HANDSHAKE_SECONDS_MAX, self._took_too_long)
        self._inner.connection_made(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        return _shared

    def buffer_updated(self, count: int) -> None:
        if self._raw.is_closing():
            return
        if not self._handshake_bytes and _shared[0] != _RECORD_OF_A_HANDSHAKE:
            self._fail("this listener speaks TLS, the client does not: its security.protocol")
            return
        session = self._session
        session.received(_shared[:count])
        try:
            if not session.is_ready:
                self._handshake_bytes += count
                self._go_on_with_handshake()
            if session.is_ready:
                self._pump()
        except TlsFailed as failed:
            self._flush()
            self._fail(str(failed))

    def _go_on_with_handshake(self) -> None:
        if self._handshake_bytes > _HANDSHAKE_BYTES_MAX:
            raise TlsFailed(f"a handshake of more than {_HANDSHAKE_BYTES_MAX} bytes")
        if self._session.handshake():
            self._forget_limit()
            self._flush()
            self._inner.secured(self._session.certificate)
        else:
            self._flush()

    def _pump(self) -> None:
        """Hand on what can be read, as long as the connection wants it."""
        session = self._session
        while self._is_reading and not self._raw.is_closing():
            count = session.read_into(self._inner.get_buffer(-1))
            if not count:
                break
            self._inner.buffer_updated(count)
        self._flush()
        if session.is_ended:
            self.close()

    def _took_too_long(self) -> None:
        self._fail(f"no TLS handshake within {HANDSHAKE_SECONDS_MAX:.0f} s")

    def _fail(self, reason: str) -> None:
        if self._session.is_ready:
            self._raw.abort()
            return
        self._inner.handshake_failed(reason)
        self._raw.close()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_limit()
        self._is_reading = False
        self._inner.connection_lost(exc)

    def _forget_limit(self) -> None:
        if self._limit is not None:
            self._limit.cancel()
            self._limit = None

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()

    # ---- from the connection

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._raw.get_extra_info(name, default)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._raw.set_write_buffer_limits(high, low)

    def is_closing(self) -> bool:
        return self._raw.is_closing()

    def pause_reading(self) -> None:
        self._is_reading = False
        self._raw.pause_reading()

    def resume_reading(self) -> None:
        self._is_reading = True
        self._raw.resume_reading()
        self._loop.call_soon(self._read_on)

    def _read_on(self) -> None:
        try:
            self._pump()
        except TlsFailed:
            self._raw.abort()

    def writelines(self, parts: Any) -> None:
        try:
            for piece in self._session.encrypt(cast(list[Buffer], parts)):
                self._raw.write(piece)
        except ssl.SSLError:  # The other side has ended it meanwhile.
            self._raw.abort()

    def _flush(self) -> None:
        if (piece := self._session.take()) and not self._raw.is_closing():
            self._raw.write(piece)

    def close(self) -> None:
        """Hang up after what was written."""
        if not self._raw.is_closing():
            self._session.end()
            self._flush()
            self._raw.close()

    def abort(self) -> None:
        """Hang up at once."""
        self._raw.abort()
