"""A cluster that tests share: fresh topics for each, brokers to kill, and all brokers up again afterwards."""

import itertools
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from ottla.client.admin.topics import create_topics
from ottla.client.blocking.client import Client
from ottla.launch.cluster import Cluster
from ottla.launch.forking.forked import WarmProcess
from ottla.model.errors import ErrorCode
from ottla.testing import cuts
from ottla.wire.apis.create_topics import CreatableTopic, CreatableTopicConfig

NAME_MAX = 200
QUICK = {
    "zookeeper.session.timeout.ms": "2000",
    "replica.lag.time.max.ms": "2000",
    "offsets.topic.num.partitions": "3",
    "leader.imbalance.check.interval.seconds": "3600",
}
"""Tests kill brokers and wait for the others to notice: here that takes two seconds."""


class TopicNotCreated(Exception):
    """The cluster refused a topic; the text is its reason."""


class ClusterUnderTest:
    """What a test sees of the cluster."""

    def __init__(self, cluster: Cluster, name: str = "test") -> None:
        self.cluster = cluster
        """The processes themselves, for whoever needs more."""
        self._name = name
        self._paused: set[int] = set()
        self._is_disturbed = False

    @property
    def bootstrap_servers(self) -> str:
        """What any Kafka client connects to."""
        return self.cluster.bootstrap_servers

    @property
    def zookeeper_connect(self) -> str:
        return self.cluster.zookeeper.connect

    @property
    def controller(self) -> int | None:
        """The broker that is controller now."""
        return self.cluster.controller

    def topic(
        self,
        name: str | None = None,
        *,
        partitions: int = 1,
        replicas: int | None = None,
        configs: Mapping[str, str] | None = None,
    ) -> str:
        """Create a topic and give its name; without a name it is a fresh one after the test's."""
        made = name or f"{self._name}-{next(_numbers)}"
        wanted = CreatableTopic(
            name=made,
            num_partitions=partitions,
            replication_factor=replicas or min(3, len(self.cluster.brokers)),
            configs=[CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()],
        )
        with Client(self.bootstrap_servers) as client:
            [row] = client.run(create_topics, [wanted])
        if row.error_code:
            error = ErrorCode(row.error_code).name
            raise TopicNotCreated(f"topic {made!r} was not created: {error}: {row.error_message}")
        return made

    def kill(self, broker: int) -> None:
        """End a broker as a crash would."""
        self.cluster.brokers[broker].kill()

    def pause(self, broker: int) -> None:
        """Freeze a broker: its connections stay open and nothing is answered."""
        self.cluster.brokers[broker].pause()
        self._paused.add(broker)
        self._is_disturbed = True

    def resume(self, broker: int) -> None:
        """Let it go on."""
        self.cluster.brokers[broker].resume()
        self._paused.discard(broker)

    def cut(self, broker: int, other: int) -> None:
        """Cut the network between two brokers: their connections break, and new ones do not come about.

        Both still reach the others, ZooKeeper and their clients.
        """
        cuts.cut(self.cluster.brokers[broker], self.cluster.brokers[other])
        self._is_disturbed = True

    def heal(self, broker: int, other: int) -> None:
        """They reach one another again."""
        cuts.heal(self.cluster.brokers[broker], self.cluster.brokers[other])

    def stop(self, broker: int) -> None:
        """A controlled shutdown."""
        self.cluster.brokers[broker].stop()

    def start(self, broker: int) -> None:
        """Start a broker that ended, and wait until the others know it."""
        self.cluster.start_broker(broker)

    def restore(self) -> None:
        """All brokers run again and reach one another, whatever a test did to them."""
        for broker in list(self._paused):
            self.resume(broker)
        for process in self.cluster.brokers:
            cuts.heal_all(process)
        for process in self.cluster.brokers:
            if not process.is_running:
                self.start(process.broker_id)
        if self._is_disturbed:
            # A frozen broker may have lost its session, one cut off may be behind: wait until all know all.
            self.cluster.await_members(frozenset(process.broker_id for process in self.cluster.brokers))
            self._is_disturbed = False

    def named(self, name: str) -> "ClusterUnderTest":
        """The same cluster, with fresh topics called after something."""
        return ClusterUnderTest(self.cluster, re.sub(r"[^A-Za-z0-9._-]+", "-", name)[:NAME_MAX])


_numbers = itertools.count()


@contextmanager
def start_cluster(
    brokers: int = 3,
    *,
    settings: Mapping[str, str] | None = None,
    data_dir: Path | None = None,
    zookeeper: str | None = None,
    warm: WarmProcess | None = None,
) -> Iterator[ClusterUnderTest]:
    """A running cluster on free ports, in a temporary directory unless told otherwise.

    ``zookeeper`` is ``keeper``, ``apache`` or a connect string, as for ``ottla up``. ``warm`` has begun to
    import the brokers.
    """
    settings = {**QUICK, **(settings or {})}
    started = Cluster(
        brokers,
        settings=settings,
        data_dir=data_dir,
        sync=False,
        zookeeper=zookeeper,
        cuttable=True,
        warm=warm,
    )
    with started as cluster:
        yield ClusterUnderTest(cluster)
