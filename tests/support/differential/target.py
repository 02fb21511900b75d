"""A broker to be judged: where it is, what it is called there, and topics of its own to be asked about."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from kazoo.client import KazooClient

from ottla.wire.apis.describe_cluster import DescribeClusterRequest
from ottla.wire.apis.metadata import MetadataRequest, MetadataRequestTopic
from support.differential.connection import Connection
from support.running.waiting import wait_until

# One moment for all, so that both brokers are sent the same bytes.
NOW_MS = int(time.time() * 1000) | 0xFF
"""Its last byte never varies: behind a batch that claims to be shorter it is read as the next one's magic."""

# Every case has partitions of its own; few cases need a topic of a special kind.
KINDS: dict[str, tuple[int, dict[str, str]]] = {
    "plain": (480, {}),
    "compact": (12, {"cleanup.policy": "compact"}),
    "stamped": (12, {"message.timestamp.type": "LogAppendTime"}),
    "tiny": (12, {"max.message.bytes": "400"}),
    "small": (12, {"segment.bytes": "1000"}),
    "strict": (24, {"message.timestamp.before.max.ms": "1000", "message.timestamp.after.max.ms": "1000"}),
    "packed": (12, {"compression.type": "gzip"}),
}


@dataclass(slots=True)
class Target:
    """One of the two brokers. ``name`` stands in the names of its topics."""

    name: str
    port: int
    bootstrap: str
    zk_connect: str
    node_id: int = -1
    controller_id: int = -1
    broker_epoch: int = -1
    controller_epoch: int = -1
    ports: dict[int, int] = field(default_factory=dict)
    topic_ids: dict[str, bytes] = field(default_factory=dict)
    peer: Target | None = None

    @property
    def the_peer(self) -> Target:
        assert self.peer is not None, "two targets know each other"
        return self.peer

    def topic(self, kind: str) -> str:
        return f"{kind}-of-{self.name}"

    def look_around(self) -> None:
        """Learn the broker's id, its neighbours and the epochs that a controller would send."""
        with Connection(self.port) as connection:
            cluster = connection.call(DescribeClusterRequest(), 0)
        self.ports = {broker.broker_id: broker.port for broker in cluster.brokers}
        self.node_id = next(number for number, port in self.ports.items() if port == self.port)
        self.controller_id = cluster.controller_id
        zk = KazooClient(hosts=self.zk_connect)
        zk.start(timeout=20)
        try:
            self.broker_epoch = zk.exists(f"/brokers/ids/{self.node_id}").czxid
            self.controller_epoch = int(zk.get("/controller_epoch")[0])
        finally:
            zk.stop()
            zk.close()

    def create_topics(self, admin: AdminClient) -> None:
        """Topics whose partitions all lie on this broker alone."""
        new = [
            NewTopic(self.topic(kind), count, replica_assignment=[[self.node_id]] * count, config=config)
            for kind, (count, config) in KINDS.items()
        ]
        for future in admin.create_topics(new).values():
            future.result(60)

    def await_topics(self, names: Iterable[str]) -> None:
        """Until the broker's own Metadata has leaders for all of these; their ids are kept."""
        wanted = list(names)
        with Connection(self.port) as connection:

            def are_there() -> bool:
                request = MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in wanted])
                found = connection.call(request, 12).topics
                self.topic_ids.update({topic.name: topic.topic_id for topic in found if not topic.error_code})
                return all(
                    not topic.error_code and all(not each.error_code for each in topic.partitions)
                    for topic in found
                )

            wait_until(are_there, f"broker {self.node_id} knows {wanted}", 60, every=0.2)


def prepare(*targets: Target) -> None:
    """Let two targets know each other, and make the topics of both."""
    first, second = targets
    first.peer, second.peer = second, first
    for target in targets:
        target.look_around()
        target.create_topics(AdminClient({"bootstrap.servers": target.bootstrap, "log_level": 0}))
    for target in targets:
        target.await_topics(each.topic(kind) for each in targets for kind in KINDS)
