"""The blocking client over a cluster in memory, with a clock that jumps: for code that takes a ``Client``."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

from ottla.client.config import ClientConfig
from ottla.client.engine.engine import Engine
from support.client.fake_cluster import FakeCluster

SERVERS = "broker:9001,broker:9002"


class FakeClient:
    """What ``ottla.client.blocking.client.Client`` offers to the data source."""

    def __init__(self, cluster: FakeCluster) -> None:
        self.cluster = cluster

    @property
    def engine(self) -> Engine:
        return self.cluster.engine

    def run(self, operation: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return self.cluster.run(operation(self.engine, *args, **kwargs))

    def run_until(self, is_done: Callable[[], bool], timeout_ms: int | None = None) -> bool:
        """As the real one does, by the fake clock."""
        cluster = self.cluster
        cluster.settle()
        deadline_ms = cluster.now_ms + (600_000 if timeout_ms is None else timeout_ms)
        while not is_done():
            due_ms = self.engine.next_tick_ms()
            if cluster.now_ms >= deadline_ms:
                assert timeout_ms is not None, "it takes too long"
                return False
            cluster.now_ms = max(cluster.now_ms + 1, min(deadline_ms, due_ms or deadline_ms))
            cluster.settle()
        return True

    def turn(self, wait_ms: int | None) -> None:
        self.cluster.settle()


def serve(monkeypatch: pytest.MonkeyPatch, cluster: FakeCluster, config: ClientConfig) -> FakeClient:
    """Let the data source find this cluster where its options name ``SERVERS``."""
    from ottla.spark.runtime import connections

    client = FakeClient(cluster)
    monkeypatch.setitem(connections._clients, (os.getpid(), config), client)  # type: ignore[arg-type]
    return client
