"""Closing a client: all who wait for it hear of it, whatever they wait for."""

import asyncio
from typing import Any

import pytest

from ottla.client.aio.client import Client
from ottla.client.config import ConsumerConfig
from ottla.client.engine.tasks import Signal, sleep, wait_for
from ottla.client.errors import ClientClosed, DeliveryFailed
from ottla.client.fetching.fetcher import FetchCore
from ottla.model.errors import ErrorCode
from ottla.model.timestamps import EARLIEST
from ottla.wire.keys import ApiKey
from support.client.fake_cluster import SILENCE
from support.client.producing import ORDERS_0, a_cluster, a_producer, a_record, refusal

NOBODY_THERE = "127.0.0.1:1"


def test_all_tasks_end_with_their_client() -> None:
    cluster = a_cluster()
    FetchCore(cluster.engine, ConsumerConfig()).assign({ORDERS_0: 0})
    producer = a_producer(cluster, linger_ms=60_000)
    producer.send("orders", a_record())
    cluster.settle()
    tasks: list[Any] = [
        cluster.spawn(sleep(60_000)),
        cluster.spawn(wait_for(Signal())),
        cluster.spawn(producer.flush()),
    ]
    cluster.script(ApiKey.PRODUCE, SILENCE)
    cluster.settle()
    not_begun = cluster.spawn(sleep(60_000))

    cluster.engine.close()

    for task in (*tasks, not_begun):
        with pytest.raises(ClientClosed):
            task.result()
    assert cluster.engine.next_tick_ms() is None, "nobody waits for anything"


def test_deliveries_end_wherever_their_records_are() -> None:
    cluster = a_cluster([1, 2])
    producer = a_producer(cluster, linger_ms=0)
    unplaced = producer.send("unknown", a_record())
    cluster.script(ApiKey.PRODUCE, SILENCE, refusal(ErrorCode.NOT_ENOUGH_REPLICAS))
    on_its_way = producer.send("orders", a_record(), partition=0)
    cluster.settle()
    refused = producer.send("orders", a_record(), partition=1)
    cluster.settle()

    cluster.engine.close()

    assert isinstance(unplaced.error, ClientClosed)
    assert isinstance(refused.error, ClientClosed)
    assert isinstance(on_its_way.error, DeliveryFailed)
    assert isinstance(on_its_way.error.cause, ClientClosed)
    with pytest.raises(ClientClosed):
        producer.send("orders", a_record())


def test_nobody_waits_for_a_closed_client_in_asyncio() -> None:
    async def story() -> None:
        client = Client(NOBODY_THERE)
        consumer, producer = client.consumer(), client.producer()
        consumer.assign({ORDERS_0: EARLIEST})
        delivery = await producer.send("orders", b"value")
        waiting = [asyncio.ensure_future(w) for w in (consumer.poll(60_000), producer.flush(), delivery)]
        await asyncio.sleep(0)

        await client.close()

        async with asyncio.timeout(5):
            ends = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(end) for end in ends] == [ClientClosed] * 3

    asyncio.run(story())
