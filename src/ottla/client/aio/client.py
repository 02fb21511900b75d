"""The client for asyncio programs: the same core, with asyncio's transports.

async with Client("localhost:9092") as client:
    await client.run(create_topics, [a_topic("orders", partitions=3)])
    producer = client.producer()
    delivery = await producer.send_and_wait("orders", b"value", key=b"key")
"""

import asyncio
import contextlib
import ssl
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from random import Random
from types import TracebackType
from typing import Concatenate, ParamSpec, Self, TypeVar, cast

from ottla.client.aio.group import GroupConsumer
from ottla.client.aio.producer import Producer
from ottla.client.config import ClientConfig, ConsumerConfig, ProducerConfig, parse_bootstrap_servers
from ottla.client.engine.engine import Engine
from ottla.client.engine.outputs import CloseLink, OpenLink, SendOnLink
from ottla.client.engine.tasks import Operation, wait_for
from ottla.client.errors import ClientClosed, ClientError
from ottla.client.fetching.fetcher import FetchCore
from ottla.client.group.config import MembershipConfig
from ottla.client.group.core import GroupConsumerCore
from ottla.config.tls.contexts import new_client_context
from ottla.model.errors import MalformedRequest
from ottla.model.ids import TopicPartition
from ottla.records.record import Record
from ottla.security.tls.session import words_of
from ottla.wire.framing import ReceiveBuffer

CLOSE_SECONDS_MAX = 5.0
"""How long closing waits for the last bytes to go out."""

STOOD_STILL_MS = 100
"""A tick that is this late means that the program blocked the event loop."""

HEARING_SECONDS = 0.05
"""How long sockets are read then before deadlines count."""

P = ParamSpec("P")
T = TypeVar("T")


def _monotonic_ms() -> int:
    return time.monotonic_ns() // 1_000_000


class _LinkProtocol(asyncio.BufferedProtocol):
    """One link's connection."""

    def __init__(self, client: "Client", link: int) -> None:
        self._client = client
        self._link = link
        self._received = ReceiveBuffer(client.config.response_bytes_max)
        self.transport: asyncio.Transport | None = None
        self.gone = asyncio.Event()
        """The connection is closed: nothing more will be sent."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._received.get_buffer()

    def buffer_updated(self, count: int) -> None:
        self._client.engine.catch_up(_monotonic_ms())  # New deadlines of resumed tasks count from now.
        self._received.received(count)
        try:
            while self.transport is not None and (frame := self._received.next_frame()) is not None:
                if self._client.engine.frame_came(self._link, frame):
                    self._received.let_go()
        except MalformedRequest as malformed:
            self.abort()
            self._client.engine.link_lost(self._link, f"what it sent is not Kafka's protocol: {malformed}")
        self._client.perform()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self.gone.set()
        if self.transport is not None:
            self.transport = None
            reason = words_of(exc) if isinstance(exc, ssl.SSLError) else str(exc or "")
            self._client.link_lost(self._link, reason or "the broker closed the connection")

    def close(self) -> None:
        """Close after sending what was written, without calling ``link_lost``."""
        transport, self.transport = self.transport, None
        if transport is not None:
            transport.close()

    def abort(self) -> None:
        """Close at once, without calling ``link_lost``."""
        transport, self.transport = self.transport, None
        if transport is not None:
            transport.abort()


class Client:
    """A connection to a cluster; producers, consumers and operations share it. Use it in one event loop."""

    def __init__(self, bootstrap_servers: str | ClientConfig) -> None:
        if isinstance(bootstrap_servers, str):
            bootstrap_servers = ClientConfig(bootstrap_servers=parse_bootstrap_servers(bootstrap_servers))
        self.config = bootstrap_servers
        self.engine = Engine(self.config, _monotonic_ms(), Random())
        self._tls = None if self.config.tls is None else new_client_context(self.config.tls)
        self._links: dict[int, _LinkProtocol] = {}
        self._opening: dict[int, asyncio.Task[None]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at_ms: int | None = None
        self._hearing: asyncio.TimerHandle | None = None
        self._is_tick_due = False
        self._is_closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @staticmethod
    def now_ms() -> int:
        """The client's clock."""
        return _monotonic_ms()

    async def run(
        self, operation: Callable[Concatenate[Engine, P], Operation[T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run an operation of ``ottla.client.admin`` (or one like them) to its end."""
        if self._is_closed:
            raise ClientClosed("the client was closed")
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        task = self.engine.spawn(_into(future, operation(self.engine, *args, **kwargs)))
        self.tick()
        try:
            return await future
        finally:
            self.engine.cancel(task)

    def producer(self, config: ProducerConfig | None = None, **settings: object) -> Producer:
        """A producer; settings by name override those of ``config``."""
        return Producer(self, replace(config or ProducerConfig(), **settings))  # type: ignore[arg-type]

    def consumer(self, config: ConsumerConfig | None = None, **settings: object) -> "Consumer":
        """A consumer that reads what it is assigned; settings by name override those of ``config``."""
        return Consumer(self, replace(config or ConsumerConfig(), **settings))  # type: ignore[arg-type]

    def group_consumer(
        self,
        group: str,
        topics: Iterable[str],
        config: ConsumerConfig | None = None,
        membership: MembershipConfig | None = None,
    ) -> GroupConsumer:
        """A consumer that shares these topics with the other members of its group."""
        core = GroupConsumerCore(
            self.engine, group, topics, config or ConsumerConfig(), membership or MembershipConfig()
        )
        return GroupConsumer(self, core)

    async def close(self) -> None:
        """Close all connections, after sending what was written."""
        if self._is_closed:
            return
        self._is_closed = True
        links = list(self._links.values())
        for link in links:
            link.close()
        self._links.clear()
        opening = list(self._opening.values())
        self.engine.close()
        self.engine.take_outputs()
        if self._timer is not None:
            self._timer.cancel()
        if self._hearing is not None:
            self._hearing.cancel()
        for task in opening:
            task.cancel()
        await asyncio.gather(*opening, return_exceptions=True)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS_MAX):
                for link in links:
                    await link.gone.wait()

    # Between the engine and asyncio

    def tick(self) -> None:
        """Run the engine's due tasks and perform its outputs."""
        if not self._is_closed and not self._hears_first():
            self.engine.tick(_monotonic_ms())
            self.perform()

    def _hears_first(self) -> bool:
        """Whether sockets are read first: an answer that arrived while the loop was blocked is not late."""
        if self._hearing is None:
            now_ms, due_ms = _monotonic_ms(), self.engine.next_tick_ms()
            if due_ms is None or now_ms - due_ms < STOOD_STILL_MS:
                return False
            self.engine.catch_up(now_ms)
            self._hearing = asyncio.get_running_loop().call_later(HEARING_SECONDS, self._heard)
        return True

    def _heard(self) -> None:
        self._hearing = None
        if not self._is_closed:
            self.engine.tick(_monotonic_ms())
            self.perform()

    def tick_soon(self) -> None:
        """Call ``tick`` once in the next iteration of the event loop."""
        if not self._is_tick_due:
            self._is_tick_due = True
            asyncio.get_running_loop().call_soon(self._due_tick)

    def _due_tick(self) -> None:
        self._is_tick_due = False
        self.tick()

    def perform(self) -> None:
        """Perform the engine's outputs and set the timer for its next deadline."""
        while outputs := self.engine.take_outputs():
            for output in outputs:
                match output:
                    case OpenLink():
                        task = asyncio.get_running_loop().create_task(self._open(output))
                        self._opening[output.link] = task
                    case SendOnLink():
                        link = self._links.get(output.link)
                        if link is not None and link.transport is not None:
                            # Encrypted, each part would become a record of its own.
                            parts = output.parts if self._tls is None else [b"".join(output.parts)]
                            link.transport.writelines(parts)
                    case CloseLink():
                        self._close_link(output.link)
        self._set_timer()

    def link_lost(self, link: int, reason: str) -> None:
        """A connection was lost."""
        self._links.pop(link, None)
        self.engine.link_lost(link, reason)
        self.perform()

    async def _open(self, output: OpenLink) -> None:
        loop = asyncio.get_running_loop()
        protocol = _LinkProtocol(self, output.link)
        try:
            await loop.create_connection(lambda: protocol, output.host, output.port, ssl=self._tls)
        except ssl.SSLError as error:
            self._opening.pop(output.link, None)
            self.link_lost(output.link, f"no TLS connection: {words_of(error)}")
            return
        except (OSError, UnicodeError) as error:  # An invalid host name raises UnicodeError.
            self._opening.pop(output.link, None)
            self.link_lost(output.link, str(error))
            return
        self._opening.pop(output.link, None)
        self._links[output.link] = protocol
        self.engine.catch_up(_monotonic_ms())
        self.engine.link_connected(output.link)
        self.perform()

    def _close_link(self, link: int) -> None:
        task = self._opening.pop(link, None)
        if task is not None:
            task.cancel()
        protocol = self._links.pop(link, None)
        if protocol is not None:
            protocol.abort()

    def _set_timer(self) -> None:
        due_ms = self.engine.next_tick_ms()
        if due_ms == self._timer_at_ms or self._is_closed:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._timer_at_ms = due_ms
        if due_ms is not None:
            delay = max(0, due_ms - _monotonic_ms()) / 1000
            self._timer = asyncio.get_running_loop().call_later(delay, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self._timer_at_ms = None
        self.tick()


def _into(future: "asyncio.Future[T]", operation: Operation[T]) -> Operation[None]:
    """Run an operation and put its result or error into a future."""
    try:
        result = yield from operation
    except ClientError as error:
        if not future.done():
            future.set_exception(error)
    else:
        if not future.done():
            future.set_result(result)


class Consumer:
    """Reads the partitions that it is assigned."""

    def __init__(self, client: Client, config: ConsumerConfig) -> None:
        self._client = client
        self._core = FetchCore(client.engine, config)

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        """Read only these partitions, each from an offset, ``EARLIEST`` or ``LATEST``."""
        self._core.assign(positions)
        self._client.tick()

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Continue from an offset, ``EARLIEST`` or ``LATEST``."""
        self._core.seek(partition, offset)
        self._client.tick()

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        self._core.pause(partitions)

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        self._core.pause(partitions, is_paused=False)
        self._client.tick()

    def position(self, partition: TopicPartition) -> int | None:
        """The offset of the next record; ``None`` while it is not known."""
        return self._core.position(partition)

    def high_watermark(self, partition: TopicPartition) -> int | None:
        """The high watermark of the last response; ``None`` before the first."""
        return self._core.high_watermark(partition)

    async def poll(
        self, timeout_ms: int, max_records: int | None = None
    ) -> dict[TopicPartition, list[Record]]:
        """The next records, waiting for them at most ``timeout_ms``."""
        count = self._core.config.max_poll_records if max_records is None else max_records
        deadline_ms = _monotonic_ms() + timeout_ms
        while not (records := self._core.take(count)):
            if not await self._data_by(deadline_ms):
                return {}
        self._client.tick()
        return records

    async def _data_by(self, deadline_ms: int) -> bool:
        while not self._core.has_data:
            left_ms = deadline_ms - _monotonic_ms()
            if left_ms <= 0:
                return False
            await self._client.run(lambda _, ms=left_ms: wait_for(self._core.data_came, ms))  # type: ignore[misc]
        return True
