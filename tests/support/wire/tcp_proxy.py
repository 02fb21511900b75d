"""A proxy between a client and a server that can cut, refuse, delay and freeze what passes through it.

It runs in a thread of its own, so that tests of any kind can hold it. Frozen bytes are not lost: they pass
when it is thawed, as on a network that drops packets for a while, unless the connection is cut meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from enum import Enum
from typing import Self, TypeVar

T = TypeVar("T")
_STEP_LIMIT_S = 60.0


class Way(Enum):
    """The two directions through the proxy."""

    TO_SERVER = "to server"
    TO_CLIENT = "to client"


BOTH_WAYS = (Way.TO_SERVER, Way.TO_CLIENT)


class TcpProxy:
    """Listens on a free port of the loopback and passes everything to ``host:port``."""

    def __init__(self, host: str, port: int) -> None:
        self.target = (host, port)
        self.port = 0
        self._delay_s = 0.0
        self._is_refusing = False
        self._cut_after: int | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="tcp-proxy", daemon=True)
        self._server: asyncio.Server | None = None
        self._flowing: dict[Way, asyncio.Event] = {}
        self._connections: dict[asyncio.Task[None], list[asyncio.StreamWriter]] = {}
        self._accepted = 0

    @classmethod
    def to(cls, address: str) -> TcpProxy:
        """A proxy for ``host:port``."""
        host, _, port = address.rpartition(":")
        return cls(host, int(port))

    @property
    def address(self) -> str:
        """Where clients connect to."""
        return f"127.0.0.1:{self.port}"

    # ---- what a test does to the network ----------------------------------------------------------

    def cut(self) -> None:
        """Reset all connections; new ones are accepted."""
        self._in_thread(self._cut)

    def cut_after(self, count: int | None) -> None:
        """Reset all connections once so many more bytes have passed to clients: in the middle of things.

        Whatever is asked for meanwhile, a cut follows what is kept back: TCP gives no stream with a hole.
        """
        self._in_thread(lambda: setattr(self, "_cut_after", count))

    def refuse(self) -> None:
        """Reset all connections, and every new one at once, until ``heal``."""
        self._is_refusing = True
        self.cut()

    def freeze(self, *ways: Way) -> None:
        """Let nothing pass in these directions (by default in both); connections stay open."""
        for way in ways or BOTH_WAYS:
            self._in_thread(self._flowing[way].clear)

    def delay(self, seconds: float) -> None:
        """Pass everything on only after this time, each way."""
        self._delay_s = seconds

    def heal(self) -> None:
        """Undo ``refuse``, ``cut_after``, ``freeze`` and ``delay``."""
        self._is_refusing = False
        self._delay_s = 0.0
        self.cut_after(None)
        for event in self._flowing.values():
            self._in_thread(event.set)

    @property
    def accepted(self) -> int:
        """How many connections have been accepted so far."""
        return self._accepted

    @property
    def open_connections(self) -> int:
        """How many connections are open now."""
        return len(self._connections)

    # ---- the thread -------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(_STEP_LIMIT_S)
        return self

    def __exit__(self, *_error: object) -> None:
        asyncio.run_coroutine_threadsafe(self._shut_down(), self._loop).result(_STEP_LIMIT_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _in_thread(self, call: Callable[[], T]) -> T:
        async def step() -> T:
            return call()

        return asyncio.run_coroutine_threadsafe(step(), self._loop).result(_STEP_LIMIT_S)

    async def _listen(self) -> None:
        for way in Way:
            self._flowing[way] = asyncio.Event()
            self._flowing[way].set()
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _shut_down(self) -> None:
        """Nobody is left: neither who talks, nor who was accepted a moment ago and has not been served."""
        assert self._server is not None, "the proxy was started"
        for listening in self._server.sockets:  # a server that is closed cannot take leave of them
            self._loop.remove_reader(listening.fileno())
        self._is_refusing = True
        self._cut()
        for task in self._connections:
            task.cancel()
        while others := asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.wait(others)
        self._server.close()

    def _cut(self) -> None:
        for writers in self._connections.values():
            for writer in writers:
                writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None, "a server's callback runs in a task"
        self._accepted += 1
        writers = self._connections[task] = [writer]
        try:
            if not self._is_refusing:
                await self._connect_and_pass(reader, writer, writers)
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            del self._connections[task]
            for each in writers:
                each.transport.abort()

    async def _connect_and_pass(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, writers: list[asyncio.StreamWriter]
    ) -> None:
        server_reader, server_writer = await asyncio.open_connection(*self.target)
        writers.append(server_writer)
        if self._is_refusing:
            return
        passing = [
            asyncio.ensure_future(self._pass_on(reader, server_writer, Way.TO_SERVER)),
            asyncio.ensure_future(self._pass_on(server_reader, writer, Way.TO_CLIENT)),
        ]
        try:
            await asyncio.wait(passing, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in passing:
                each.cancel()
            await asyncio.gather(*passing, return_exceptions=True)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, way: Way) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65_536):
                if self._delay_s:
                    await asyncio.sleep(self._delay_s)
                await self._flowing[way].wait()
                is_last = False
                if way is Way.TO_CLIENT and (left := self._cut_after) is not None:
                    is_last = len(data) >= left
                    data, self._cut_after = data[:left], None if is_last else left - len(data)
                writer.write(data)
                await writer.drain()
                if is_last:
                    self._cut()
