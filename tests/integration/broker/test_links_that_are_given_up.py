"""What was sent over a link that is given up does not arrive later."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from types import SimpleNamespace
from typing import cast

import pytest
import uvloop

from ottla.server.edge import Edge
from ottla.server.peers import PeerConnection


@pytest.mark.parametrize("new_loop", [uvloop.new_event_loop, asyncio.new_event_loop])
def test_a_link_that_is_given_up_is_reset(new_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def live() -> None:
        loop = asyncio.get_running_loop()
        is_open = asyncio.Event()
        edge = cast(Edge, SimpleNamespace(loop=loop, peer_connected=lambda _link: is_open.set()))
        with socket.create_server(("127.0.0.1", 0)) as listener:
            peer = PeerConnection(edge, 1, "127.0.0.1:1")
            peer.open("127.0.0.1", listener.getsockname()[1])
            await is_open.wait()
            with listener.accept()[0] as theirs:
                theirs.setblocking(False)

                peer.forget()

                with pytest.raises(ConnectionResetError):
                    await loop.sock_recv(theirs, 1)

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(asyncio.wait_for(live(), 30))
