"""What the console asks of brokers, and what it shows of brokers that do not answer."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from ottla.client.config import ClientConfig, parse_bootstrap_servers
from ottla.console.app import Console
from ottla.console.guard.token import Token
from ottla.console.read import looker
from ottla.launch.cluster import Cluster
from ottla.model.ids import TopicPartition
from ottla.testing.cluster import ClusterUnderTest
from support.client.console_process import page_of, twin_of
from support.running.waiting import wait_until

ORDERS_0 = TopicPartition("orders", 0)
LOOK_AGAIN_S = 0.3
pytestmark = [pytest.mark.slow]


def test_when_nobody_looks_nothing_is_asked_and_the_next_look_finds_what_happened(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looker, "IDLE_S", 0.5)
    config = ClientConfig(bootstrap_servers=parse_bootstrap_servers(cluster.bootstrap_servers))

    async def visits() -> tuple[int, int, int]:
        console = Console(config, Token("s", 1))
        looking = asyncio.create_task(console.looker.run())
        async with asyncio.timeout(60):
            while not console.world.history_of(ORDERS_0):  # Decisions are recorded a moment later.
                await console.looker.await_picture()
                with suppress(TimeoutError):  # Without a look the looker falls asleep, and no news come.
                    await asyncio.wait_for(console.world.news(console.world.number), LOOK_AGAIN_S)
            await console.looker.asleep.wait()
        asked = console.world.requests
        before = len(console.world.history_of(ORDERS_0))
        await console.looker.await_picture()
        again = len(console.world.history_of(ORDERS_0))
        looking.cancel()
        with suppress(asyncio.CancelledError):
            await looking
        assert asked < console.world.requests
        return asked, before, again

    asked, before, again = asyncio.run(visits())

    assert asked > 0
    assert before == again > 0, "records of decisions are read once"


@pytest.mark.full("brokers that do not answer are waited for")
def test_frozen_brokers_leave_the_last_picture_with_its_age(cluster: Cluster, address: str) -> None:
    assert twin_of(address, "/index.json")["frame"]["trouble"] is None
    under_test = ClusterUnderTest(cluster)
    try:
        for broker in range(3):
            under_test.pause(broker)
        wait_until(lambda: "The brokers do not answer" in page_of(address, "/"), "the page says so", 60)
        page = page_of(address, "/partitions")
    finally:
        for broker in range(3):
            under_test.resume(broker)

    assert "orders-3" in page
    wait_until(lambda: twin_of(address, "/index.json")["frame"]["trouble"] is None, "they are back", 60)
