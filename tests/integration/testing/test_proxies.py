"""The proxies of the tests leave no socket to the collector, whoever connects while they end."""

from __future__ import annotations

import gc
import socket
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from typing import Any

import pytest

from support.wire.recorder import Recorder
from support.wire.tcp_proxy import TcpProxy

CONNECTIONS = 20
ROUNDS = 5


@pytest.fixture
def server() -> Iterator[int]:
    """A port whose server hangs up on everybody."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    listening.accept()[0].close()

        thread = threading.Thread(target=serve)
        thread.start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)
        thread.join()


@pytest.fixture
def left_to_the_collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What was not closed from now on."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gc.collect()
    found: list[str] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda told: found.append(str(told.exc_value)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield found


@pytest.mark.parametrize("make", [lambda port: TcpProxy("127.0.0.1", port), Recorder])
def test_who_connects_while_a_proxy_ends_is_closed(
    make: Callable[[int], Any], server: int, left_to_the_collector: list[str]
) -> None:
    for _ in range(ROUNDS):
        clients: list[socket.socket] = []
        enough, is_over = threading.Event(), threading.Event()

        def hammer(
            port: int,
            clients: list[socket.socket] = clients,
            enough: threading.Event = enough,
            is_over: threading.Event = is_over,
        ) -> None:
            while not is_over.is_set():
                with suppress(OSError):
                    clients.append(socket.create_connection(("127.0.0.1", port), timeout=5))
                if len(clients) > CONNECTIONS:
                    enough.set()

        with make(server) as proxy:
            hammering = threading.Thread(target=hammer, args=(proxy.port,))
            hammering.start()
            assert enough.wait(60)
        is_over.set()
        hammering.join()
        for client in clients:
            client.close()
        del proxy
        gc.collect()

    assert left_to_the_collector == []
