"""The asyncio client: what it does first when its program lets the loop turn again."""

import asyncio
import socket
import threading

import pytest

from ottla.client.aio.client import Client
from ottla.client.config import ClientConfig
from ottla.client.engine.tasks import ANY_BROKER, ask
from ottla.wire.apis.list_groups import ListGroupsRequest, ListGroupsResponse
from unit.client.blocking.test_blocking import (
    REQUEST_TIMEOUT_MS,
    SlowBroker,
    answer_all,
    ask_and_look_at_the_clock,
)


def test_an_answer_that_lay_in_the_socket_is_not_late_however_long_the_loop_stood_still(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    is_sent, is_answered = threading.Event(), threading.Event()

    async def story(address: tuple[str, int]) -> list[str]:
        config = ClientConfig(bootstrap_servers=(address,), request_timeout_ms=REQUEST_TIMEOUT_MS)
        async with Client(config) as client:
            await client.run(lambda engine: engine.refresh(engine.now_ms + 10_000))
            task = client.engine.spawn(ask(ANY_BROKER, ListGroupsRequest(), ListGroupsResponse))
            client.tick()
            is_sent.set()
            assert is_answered.wait(10), "the loop stands still meanwhile"

            now_ms = client.engine.now_ms + 2 * REQUEST_TIMEOUT_MS
            monkeypatch.setattr("ottla.client.aio.client._monotonic_ms", lambda: now_ms)
            client.tick()
            async with asyncio.timeout(10):
                while not task.is_done:
                    await asyncio.sleep(0)
            return [group.group_id for group in task.result().groups]

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=answer_all, args=(listener, is_sent, is_answered))
        thread.start()

        assert asyncio.run(story(listener.getsockname())) == ["g"]
        thread.join(10)


def test_who_goes_on_with_an_answer_has_all_its_time_from_then_on(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SlowBroker()
    monkeypatch.setattr("ottla.client.aio.client._monotonic_ms", lambda: clock.now_ms)

    async def story(address: tuple[str, int]) -> int:
        config = ClientConfig(bootstrap_servers=(address,), request_timeout_ms=REQUEST_TIMEOUT_MS)
        async with Client(config) as client, asyncio.timeout(10):
            return await client.run(ask_and_look_at_the_clock)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=answer_all, args=(listener, clock, threading.Event()))
        thread.start()

        assert asyncio.run(story(listener.getsockname())) == clock.now_ms
        thread.join(10)
