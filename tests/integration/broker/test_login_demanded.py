"""A ZooKeeper that takes no session without a login: a broker says that it has none, and waits."""

from itertools import pairwise
from pathlib import Path

import pytest

from ottla.launch.embedded_zookeeper import EmbeddedZooKeeper
from support.processes.ottla_broker import OttlaBroker
from support.running.waiting import wait_until

pytestmark = [pytest.mark.java, pytest.mark.slow]

DEMANDING = {"enforce.auth.enabled": "true", "enforce.auth.schemes": "digest"}


def test_a_broker_does_not_start_and_says_why(tmp_path: Path) -> None:
    with EmbeddedZooKeeper(tmp_path / "zookeeper", sync=False, settings=DEMANDING) as server:
        broker = OttlaBroker(1, server.connect, log_dir=tmp_path / "data")
        broker.launch()
        try:
            assert broker.exit_code(30) == 1
        finally:
            broker.stop()

        assert "demand a login" in broker.log_text()


def test_a_running_broker_registers_again_when_the_demand_is_gone(tmp_path: Path) -> None:
    servers = [
        EmbeddedZooKeeper(tmp_path / "zookeeper", sync=False, settings=settings)
        for settings in ({}, DEMANDING, {})
    ]
    servers[0].start()
    broker = OttlaBroker(1, servers[0].connect, log_dir=tmp_path / "data")
    try:
        broker.start()
        for before, after in pairwise(servers):
            before.stop()
            after.port = before.port
            after.start()
            if after is servers[1]:
                wait_until(lambda: "demand a login" in broker.log_text(), "the broker was refused", 30)
        wait_until(lambda: broker.log_text().count("registered broker=1") == 2, "it is registered again", 30)
        assert broker.is_running
    finally:
        broker.stop()
        for server in servers:
            server.stop()
