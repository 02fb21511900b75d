"""The ZooKeeper client at asyncio's edge: a mishap of one moment does not stop what drives the session."""

import asyncio
from typing import Any

import pytest

from ottla.server.zookeeper.session import ZooKeeperClient
from ottla.zookeeper.session import State

NOBODY = "127.0.0.1:1"


class ClosedConnection:
    """A transport that its loop has closed already refuses to write."""

    may_write = True

    def write(self, _data: bytes) -> None:
        raise RuntimeError("the handler is closed")

    def abandon(self) -> None:
        pass


def test_a_session_can_be_ended_after_a_write_has_failed() -> None:
    async def run() -> State:
        client = ZooKeeperClient(NOBODY)
        client.start()
        client._session.session_id = 7
        client._session.connection_made(client._now_ms())  # It wants to shake hands.
        broken: Any = ClosedConnection()
        client._connection = broken
        with pytest.raises(RuntimeError):
            client.on_may_write_again()
        async with asyncio.timeout(10):
            await client.close(limit_ms=10)
        return client._session.state

    assert asyncio.run(run()) is State.CLOSED
