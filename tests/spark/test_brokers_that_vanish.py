"""Whoever watches a job that follows a topic hears within seconds of brokers that vanish and come back."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("numba")

from ottla.client.admin.topics import a_topic, create_topics
from ottla.client.blocking.client import Client
from ottla.launch.cluster import Cluster
from support.processes.commands import ottla_command
from support.processes.terminal import CTRL_C, Terminal

pytestmark = [
    pytest.mark.full("starts a Spark of its own"),
    pytest.mark.slow,
    pytest.mark.java,
]

SOON_S = 10
"""Three seconds of patience and a slow machine; a query itself says nothing for a minute."""


@pytest.fixture
def few() -> Iterator[Cluster]:
    """Brokers that may be killed."""
    with Cluster(2, sync=False) as running:
        yield running


def test_brokers_that_vanish_are_told_at_once_and_so_is_their_return(few: Cluster, tmp_path: Path) -> None:
    with Client(few.bootstrap_servers) as client:
        client.run(create_topics, [a_topic("orders", partitions=2, replication_factor=2)])
        producer = client.producer()
        producer.send("orders", b"1")
        producer.flush()
    words = ("--topics", "orders", "--to", "kept", "--follow", "1")
    at = ("--bootstrap-server", few.bootstrap_servers)

    with Terminal(ottla_command("pipeline", "run", "archive", *words, *at), tmp_path) as terminal:
        terminal.await_text("batch 0: ")
        began = time.monotonic()
        few.brokers[1].kill()
        terminal.await_text("broker 1 cannot be reached (")
        few.brokers[0].kill()
        terminal.await_text("no broker can be reached (")
        assert time.monotonic() - began < 2 * SOON_S
        few.launch_broker(0)
        few.launch_broker(1)
        terminal.await_text("all brokers can be reached")
        terminal.press(CTRL_C)
        assert terminal.await_end() == 130
