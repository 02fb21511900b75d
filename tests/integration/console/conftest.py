"""A cluster, its console in a process of its own, and a browser."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from ottla.launch.cluster import Cluster
from support.client.browser import a_browser
from support.client.console_process import running_console
from support.processes.commands import run_here
from support.zookeeper.chroots import Chroots

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with a_browser() as running:
        yield running


@pytest.fixture(scope="module")
def cluster(chroots: Chroots) -> Iterator[Cluster]:
    settings = {"auto.leader.rebalance.enable": "false", "offsets.topic.num.partitions": "3"}
    with Cluster(brokers=3, settings=settings, zookeeper=chroots.make().connect) as running:
        words = ("--bootstrap-server", running.bootstrap_servers, "--create", "--topic")
        made = run_here("topics", *words, "orders", "--replica-assignment", "1:2:0,1:0:2,2:0:1,0:1:2")
        assert made.exit_code == 0, made.stderr
        yield running


@pytest.fixture(scope="module")
def address(cluster: Cluster) -> Iterator[str]:
    """What ``ottla console`` prints; every act is open."""
    from ottla.console.change.act import NAMES

    with running_console(cluster.bootstrap_servers, "--allow", ",".join(NAMES)) as printed:
        yield printed
