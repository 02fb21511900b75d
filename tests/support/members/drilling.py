"""What tests with member programs share: a topic and a group for one drill, and its coordinator."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic

from ottla.launch.cluster import Cluster
from ottla.wire.apis.find_coordinator import FindCoordinatorRequest
from support.members.drill import Drill
from support.members.programs import Kind
from support.running.waiting import wait_until
from support.wire.client import WireClient

PARTITIONS = 6
_numbers = itertools.count()


@contextmanager
def a_drill(cluster: Cluster, kind: Kind, strategy: str, home: Path) -> Iterator[Drill]:
    """A topic of its own that is written, and a group without members yet."""
    name = f"{kind.name}-{next(_numbers)}"
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
    admin.create_topics([NewTopic(name, PARTITIONS, 3)])[name].result(30)
    drill = Drill(cluster.bootstrap_servers, name, f"g-{name}", kind, strategy, home)
    try:
        yield drill
    finally:
        drill.close()


def coordinator(cluster: Cluster, group: str) -> int:
    """The broker that coordinates a group."""

    def found() -> list[int]:
        for broker in cluster.brokers:
            if broker.is_running:
                with WireClient(broker.address) as client:
                    answer = client.ask(FindCoordinatorRequest(key=group), 3)
                    if answer.error_code == 0:
                        return [int(answer.node_id)]
        return []

    return wait_until(found, "the group has a coordinator")[0]


@contextmanager
def coordinator_killed(cluster: Cluster, drill: Drill) -> Iterator[None]:
    """kill -9; it is started again at the end."""
    number = coordinator(cluster, drill.group)
    cluster.brokers[number].kill()
    try:
        yield
    finally:
        cluster.start_broker(number)
