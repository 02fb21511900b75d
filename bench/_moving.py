"""The load of a coordinator's partition: the time until its next leader answers."""

import time
from collections.abc import Callable
from typing import Any

from _sides import Side, settle

from ottla.client.admin.cluster import alter_partition_reassignments, elect_leaders
from ottla.client.blocking.client import Client
from ottla.model.ids import TopicPartition
from ottla.wire.apis.api_versions import ApiVersionsRequest
from support.wire.client import WireClient


def move(
    side: Side,
    partition: TopicPartition,
    target: Any,
    is_loaded: Callable[[WireClient], bool],
    limit_s: float,
) -> tuple[float, float]:
    """Let this broker lead the partition: seconds until it has loaded it, its longest silence in ms."""
    replicas = (target.broker_id, *(b.broker_id for b in side.brokers if b is not target))
    with Client(side.bootstrap) as client:
        client.run(alter_partition_reassignments, {partition: replicas})
    settle()
    longest = 0.0
    with Client(side.bootstrap) as client, WireClient(target.address, limit_s) as probe:
        client.run(elect_leaders, [partition])
        began = time.perf_counter()
        while True:
            asked = time.perf_counter()
            probe.ask(ApiVersionsRequest(), 0)
            longest = max(longest, time.perf_counter() - asked)
            if is_loaded(probe):
                return time.perf_counter() - began, longest * 1000
            time.sleep(0.002)
