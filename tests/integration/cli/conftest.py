"""A small cluster for the commands, and the commands as they are typed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ottla.launch.cluster import Cluster
from support.processes.commands import Ran, Run, run_command, run_here
from support.zookeeper.chroots import Chroots


@pytest.fixture(scope="module")
def cluster(chroots: Chroots) -> Iterator[Cluster]:
    settings = {
        "offsets.topic.num.partitions": "3",
        "default.replication.factor": "2",
        "auto.leader.rebalance.enable": "false",
    }
    with Cluster(brokers=3, settings=settings, zookeeper=chroots.make().connect) as running:
        yield running


@pytest.fixture(scope="module")
def ottla(cluster: Cluster) -> Run:
    """``ottla COMMAND ... --bootstrap-server`` of the cluster."""

    def run(command: str, *args: str, stdin: bytes = b"") -> Ran:
        words = (command, "--bootstrap-server", cluster.bootstrap_servers, *args)
        return run_command(*words, stdin=stdin) if stdin else run_here(*words)

    return run


@pytest.fixture(scope="module")
def done(ottla: Run) -> Run:
    """The same, for commands that must succeed."""

    def run(command: str, *args: str, stdin: bytes = b"") -> Ran:
        ran = ottla(command, *args, stdin=stdin)
        assert ran.exit_code == 0, f"{command} {args}: {ran.stderr}{ran.stdout}"
        return ran

    return run
