"""Ottla's own client behind those calls of librdkafka's producer that the load makes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chaos.workers.written import Written
from ottla.client.blocking.client import Client
from ottla.client.config import ClientConfig, parse_bootstrap_servers
from ottla.client.producing.batches import Delivery


class OwnProducer:
    """An idempotent producer with acks=all that finds out soon where its leader has gone."""

    def __init__(self, bootstrap: str) -> None:
        self._client = Client(
            ClientConfig(
                bootstrap_servers=parse_bootstrap_servers(bootstrap),
                request_timeout_ms=10_000,
                metadata_max_age_ms=5_000,
                retry_backoff_ms=50,
                retry_backoff_max_ms=500,
                reconnect_backoff_ms=50,
                reconnect_backoff_max_ms=500,
                socket_connection_setup_timeout_ms=2_000,
            )
        )
        self._producer = self._client.producer(
            linger_ms=10, delivery_timeout_ms=600_000, buffer_memory=256 * 1024 * 1024
        )

    def produce(
        self, topic: str, value: bytes, *, partition: int, on_delivery: Callable[[Any, Any], None]
    ) -> None:
        def done(delivery: Delivery) -> None:
            on_delivery(delivery.error, Written(value, delivery.offset))

        self._producer.send(topic, value, partition=partition).when_done(done)

    def poll(self, seconds: float) -> None:
        self._client.turn(int(seconds * 1000))

    def flush(self, seconds: float) -> None:
        """Whatever is not delivered by then stays without an answer."""
        core = self._producer._core
        self._client.run_until(lambda: not core.buffered_bytes, int(seconds * 1000))
