"""The client for ordinary programs: calls block, I/O happens inside them, there is no thread and no asyncio.

    with Client("localhost:9092") as client:
        client.run(create_topics, [a_topic("orders", partitions=3)])
        producer = client.producer()
        producer.send("orders", b"value", key=b"key")
        producer.flush()

Not for use by several threads at once: give each its own client. The producer, the consumer and the group
consumer are imported only when they are used.
"""

import errno
import os
import selectors
import socket
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace
from random import Random
from types import TracebackType
from typing import TYPE_CHECKING, Concatenate, ParamSpec, Self, TypeAlias, TypeVar

from ottla.client.config import ClientConfig, ConsumerConfig, ProducerConfig, parse_bootstrap_servers
from ottla.client.engine.engine import Engine
from ottla.client.engine.outputs import CloseLink, OpenLink, SendOnLink
from ottla.client.engine.tasks import Operation
from ottla.client.errors import ClientClosed
from ottla.config.tls.contexts import new_client_context
from ottla.model.errors import MalformedRequest
from ottla.security.tls.session import TlsFailed, TlsSession
from ottla.wire.framing import ReceiveBuffer
from ottla.wire.primitives import Buffer

if TYPE_CHECKING:
    from ottla.client.blocking.consumer import Consumer
    from ottla.client.blocking.group import GroupConsumer
    from ottla.client.blocking.producer import Producer
    from ottla.client.group.config import MembershipConfig

P = ParamSpec("P")
T = TypeVar("T")

CLOSE_MS_MAX = 5_000
"""How long closing waits until the last bytes are sent."""

_BUFFERS_PER_WRITE = 256
_ENCRYPTED_BYTES_MAX = 256 * 1024
_READS_MAX = 100
"""How often sockets are read at most before deadlines count."""
_Address: TypeAlias = tuple[
    socket.AddressFamily,
    socket.SocketKind,
    int,
    str,
    tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes],
]
_CONNECTING = (0, errno.EINPROGRESS, errno.EWOULDBLOCK)


def _monotonic_ms() -> int:
    return time.monotonic_ns() // 1_000_000


class _Socket:
    """One link's socket: it cuts received bytes into frames and keeps bytes that are not sent yet."""

    def __init__(self, link: int, frame_bytes_max: int, tls: TlsSession | None) -> None:
        self.link = link
        self.tls = tls
        self.socket: socket.socket
        self.is_connected = False
        self.received = ReceiveBuffer(frame_bytes_max)
        self.unsent: deque[memoryview] = deque()
        self._addresses: deque[_Address] = deque()

    def open(self, host: str, port: int) -> str | None:
        """Begin to connect; the error if that fails at once."""
        try:
            self._addresses.extend(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except OSError as error:
            return error.strerror or str(error)
        except UnicodeError:
            return f"{host} is not a host name"
        return self.open_next("no address")

    def open_next(self, refusal: str) -> str | None:
        """Begin to connect to the host's next address; the last error if there is none."""
        while self._addresses:
            family, kind, protocol, _, address = self._addresses.popleft()
            try:
                self.socket = socket.socket(family, kind, protocol)
            except OSError as error:
                refusal = error.strerror or str(error)
                continue
            self.socket.setblocking(False)
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            code = self.socket.connect_ex(address)
            if code in _CONNECTING:
                return None
            self.socket.close()
            refusal = os.strerror(code)
        return refusal

    def connect_error(self) -> str | None:
        """Why the connection could not be made, or ``None``."""
        code = self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        return os.strerror(code) if code else None

    def connected(self) -> bool:
        """It is connected; whether it is ready for frames: TLS shakes hands first."""
        self.is_connected = True
        return self.tls is None or self._shake_hands(self.tls)

    def _shake_hands(self, tls: TlsSession) -> bool:
        try:
            return tls.handshake()
        finally:
            self._send_raw([tls.take()])

    def take_in(self) -> bool | None:
        """Read once; whether that made it ready for frames, None at the end of the stream."""
        if self.tls is None:
            count = self.socket.recv_into(self.received.get_buffer())
            self.received.received(count)
            return False if count else None
        data = self.socket.recv(_ENCRYPTED_BYTES_MAX)
        self.tls.received(data)
        is_new = not self.tls.is_ready and self._shake_hands(self.tls)
        return is_new if data else None

    def decrypt(self) -> bool:
        """Decrypt what room there is for; whether there was something."""
        if self.tls is None or not self.tls.is_ready:
            return False
        count = self.tls.read_into(self.received.get_buffer())
        self.received.received(count)
        return bool(count)

    def send(self, parts: Iterable[Buffer]) -> None:
        self._send_raw(parts if self.tls is None else self.tls.encrypt(parts))

    def _send_raw(self, parts: Iterable[Buffer]) -> None:
        self.unsent.extend(memoryview(part) for part in parts if len(part))
        if self.is_connected:
            self.write()

    def write(self) -> None:
        """Send as much as the socket takes."""
        unsent = self.unsent
        while unsent:
            try:
                count = self.socket.sendmsg([unsent[n] for n in range(min(len(unsent), _BUFFERS_PER_WRITE))])
            except BlockingIOError:
                return
            while count:
                if count >= len(unsent[0]):
                    count -= len(unsent.popleft())
                else:
                    unsent[0] = unsent[0][count:]
                    count = 0


class Client:
    """A connection to a cluster; producers, consumers and operations share it."""

    def __init__(self, bootstrap_servers: str | ClientConfig) -> None:
        if isinstance(bootstrap_servers, str):
            bootstrap_servers = ClientConfig(bootstrap_servers=parse_bootstrap_servers(bootstrap_servers))
        self.config = bootstrap_servers
        self._tls = None if self.config.tls is None else new_client_context(self.config.tls)
        self.engine = Engine(self.config, _monotonic_ms(), Random())
        self._sockets: dict[int, _Socket] = {}
        self._selector = selectors.DefaultSelector()
        self._is_closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @staticmethod
    def now_ms() -> int:
        """The client's clock."""
        return _monotonic_ms()

    def run(
        self, operation: Callable[Concatenate[Engine, P], Operation[T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run an operation of ``ottla.client.admin`` (or one like them) to its end."""
        task = self.engine.spawn(operation(self.engine, *args, **kwargs))
        self.run_until(lambda: task.is_done)
        return task.result()

    def producer(self, config: ProducerConfig | None = None, **settings: object) -> "Producer":
        """A producer; settings by name override those of ``config``."""
        from ottla.client.blocking.producer import Producer

        return Producer(self, replace(config or ProducerConfig(), **settings))  # type: ignore[arg-type]

    def consumer(self, config: ConsumerConfig | None = None, **settings: object) -> "Consumer":
        """A consumer that reads what it is assigned; settings by name override those of ``config``."""
        from ottla.client.blocking.consumer import Consumer

        return Consumer(self, replace(config or ConsumerConfig(), **settings))  # type: ignore[arg-type]

    def group_consumer(
        self,
        group: str,
        topics: Iterable[str],
        config: ConsumerConfig | None = None,
        membership: "MembershipConfig | None" = None,
    ) -> "GroupConsumer":
        """A consumer that shares these topics with the other members of its group."""
        from ottla.client.blocking.group import GroupConsumer
        from ottla.client.group.config import MembershipConfig
        from ottla.client.group.core import GroupConsumerCore

        core = GroupConsumerCore(
            self.engine, group, topics, config or ConsumerConfig(), membership or MembershipConfig()
        )
        return GroupConsumer(self, core)

    def close(self) -> None:
        """Close all connections, after sending what was written (for at most ``CLOSE_MS_MAX``)."""
        if not self._is_closed:
            self.run_until(lambda: not any(sock.unsent for sock in self._sockets.values()), CLOSE_MS_MAX)
            self._is_closed = True
            self.engine.close()
            self._perform()
            for link in list(self._sockets):
                self._drop(link)
            self._selector.close()

    # The loop

    def run_until(self, is_done: Callable[[], bool], timeout_ms: int | None = None) -> bool:
        """Do I/O until a condition holds or the time is over; whether it holds."""
        if self._is_closed:
            raise ClientClosed("the client was closed")
        deadline_ms = None if timeout_ms is None else _monotonic_ms() + timeout_ms
        self.turn(0)
        while not is_done():
            now_ms = _monotonic_ms()
            if deadline_ms is not None and now_ms >= deadline_ms:
                return False
            self.turn(None if deadline_ms is None else deadline_ms - now_ms)
        return True

    def turn(self, wait_ms: int | None) -> None:
        """Run what is due, then send and receive once, waiting at most ``wait_ms`` for sockets."""
        engine = self.engine
        self._read_before_the_tick()
        engine.tick(_monotonic_ms())
        self._perform()
        next_tick_ms = engine.next_tick_ms()
        if next_tick_ms is not None:
            until_tick_ms = max(0, next_tick_ms - _monotonic_ms())
            wait_ms = until_tick_ms if wait_ms is None else min(wait_ms, until_tick_ms)
        ready = self._selector.select(None if wait_ms is None else wait_ms / 1000)
        engine.catch_up(_monotonic_ms())  # New deadlines of resumed tasks count from now.
        for key, events in ready:
            self._serve(key.data, events)
        engine.tick(_monotonic_ms())
        self._perform()

    def _read_before_the_tick(self) -> None:
        """Read before deadlines count: an answer that arrived while the program was busy is not late."""
        now_ms = _monotonic_ms()
        due_ms = self.engine.next_tick_ms()
        if due_ms is None or due_ms > now_ms:
            return
        self.engine.catch_up(now_ms)
        for _ in range(_READS_MAX):
            ready = self._selector.select(0)
            if not ready:
                return
            for key, events in ready:
                self._serve(key.data, events)

    def _perform(self) -> None:
        while outputs := self.engine.take_outputs():
            for output in outputs:
                match output:
                    case OpenLink():
                        self._open(output)
                    case SendOnLink():
                        if (sock := self._sockets.get(output.link)) is not None:
                            self._guarded(sock, lambda s=sock, o=output: s.send(o.parts))  # type: ignore[misc]
                    case CloseLink():
                        self._drop(output.link)

    def _open(self, output: OpenLink) -> None:
        tls = None if self._tls is None else TlsSession(self._tls, output.host)
        sock = _Socket(output.link, self.config.response_bytes_max, tls)
        refusal = sock.open(output.host, output.port)
        if refusal is not None:
            self.engine.link_lost(output.link, refusal)
            return
        self._sockets[output.link] = sock
        self._selector.register(sock.socket, selectors.EVENT_WRITE, sock)

    def _serve(self, sock: _Socket, events: int) -> None:
        if self._sockets.get(sock.link) is not sock:
            return
        if not sock.is_connected:
            refusal = sock.connect_error()
            if refusal is not None:
                self._try_next_address(sock, refusal)
                return
            self._guarded(sock, lambda: self._connected(sock, sock.connected()))
            return
        if events & selectors.EVENT_WRITE:
            self._guarded(sock, sock.write)
        if events & selectors.EVENT_READ:
            self._guarded(sock, lambda: self._read(sock))

    def _connected(self, sock: _Socket, is_ready: bool) -> None:
        if is_ready:
            self.engine.link_connected(sock.link)

    def _try_next_address(self, sock: _Socket, refusal: str) -> None:
        self._drop(sock.link)
        last_refusal = sock.open_next(refusal)
        if last_refusal is not None:
            self.engine.link_lost(sock.link, last_refusal)
        else:
            self._sockets[sock.link] = sock
            self._selector.register(sock.socket, selectors.EVENT_WRITE, sock)

    def _read(self, sock: _Socket) -> None:
        try:
            is_ready = sock.take_in()
        except BlockingIOError:
            return
        if is_ready is None or (sock.tls is not None and sock.tls.is_ended):
            self._lose(sock, "the broker closed the connection")
            return
        self._connected(sock, is_ready)
        self._take_frames(sock)
        while self._sockets.get(sock.link) is sock and sock.decrypt():
            self._take_frames(sock)

    def _take_frames(self, sock: _Socket) -> None:
        while self._sockets.get(sock.link) is sock and (frame := sock.received.next_frame()) is not None:
            if self.engine.frame_came(sock.link, frame):
                sock.received.let_go()
            self._perform()

    def _guarded(self, sock: _Socket, action: Callable[[], None]) -> None:
        """Do I/O on a socket; an error closes the link."""
        try:
            action()
        except TlsFailed as failed:
            self._lose(sock, f"TLS: {failed}")
        except OSError as error:
            self._lose(sock, error.strerror or str(error))
        except MalformedRequest as malformed:
            self._lose(sock, f"what it sent is not Kafka's protocol: {malformed}")
        else:
            self._watch(sock)

    def _watch(self, sock: _Socket) -> None:
        if self._sockets.get(sock.link) is sock and sock.is_connected:
            events = selectors.EVENT_READ | (selectors.EVENT_WRITE if sock.unsent else 0)
            if self._selector.get_key(sock.socket).events != events:
                self._selector.modify(sock.socket, events, sock)

    def _lose(self, sock: _Socket, reason: str) -> None:
        self._drop(sock.link)
        self.engine.link_lost(sock.link, reason)

    def _drop(self, link: int) -> None:
        sock = self._sockets.pop(link, None)
        if sock is not None:
            self._selector.unregister(sock.socket)
            sock.socket.close()
