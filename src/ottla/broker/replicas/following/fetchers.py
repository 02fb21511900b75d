"""Which fetcher follows which partition: Kafka's spread over leaders and fetcher numbers."""

from collections.abc import Iterator
from contextlib import contextmanager

from ottla.broker.peers.links import PeerLinks
from ottla.broker.replicas.following.apply import FollowerLogs
from ottla.broker.replicas.following.fetcher import Fetcher
from ottla.broker.replicas.losses import LossListener
from ottla.broker.replicas.partition import Partition
from ottla.broker.replicas.throttles import Throttles
from ottla.broker.runtime.runtime import Runtime
from ottla.config.areas import BrokerConfig
from ottla.model.ids import BrokerId, TopicPartition
from ottla.replication.fetch_plan import fetcher_of


class Fetchers:
    """All fetchers of this broker, by leader and number."""

    def __init__(
        self, runtime: Runtime, links: PeerLinks, throttles: Throttles, losses: LossListener
    ) -> None:
        self._runtime = runtime
        self._links = links
        self._throttles = throttles
        self._logs = FollowerLogs(runtime, throttles, losses)
        self._by_place: dict[tuple[BrokerId, int], Fetcher] = {}
        self._of_partition: dict[TopicPartition, Fetcher] = {}
        self._is_holding_back = False

    def follow(self, partition: Partition) -> None:
        """Fetch this partition from its leader."""
        assert partition.follower is not None, "only followers fetch"
        self.unfollow(partition)
        number = fetcher_of(partition.name, max(1, self._runtime.config.replication.num_replica_fetchers))
        place = (partition.follower.leader, number)
        fetcher = self._by_place.get(place)
        if fetcher is None:
            fetcher = self._by_place[place] = Fetcher(
                self._runtime, self._links, self._throttles, self._logs, *place
            )
            fetcher.is_held_back = self._is_holding_back
        self._of_partition[partition.name] = fetcher
        fetcher.add(partition)

    def follow_anew(self, partition: Partition) -> None:
        """Something about it has changed: fetch it afresh, if it is being fetched."""
        if partition.name in self._of_partition:
            self.follow(partition)

    def on_broker_config_changed(self, before: BrokerConfig, after: BrokerConfig) -> None:
        """The broker's own settings changed."""
        self._throttles.set_limits(after.replication)
        if before.replication.num_replica_fetchers != after.replication.num_replica_fetchers:
            self._spread_anew()

    def _spread_anew(self) -> None:
        """The number of fetchers has changed: whatever is being fetched goes to the one it belongs to now."""
        for name, fetcher in list(self._of_partition.items()):
            partition = fetcher.partitions.get(name)
            if partition is not None and partition.follower is not None:
                self.follow(partition)
        self.close_idle()

    @contextmanager
    def held_back(self) -> Iterator[None]:
        """Partitions are being added, perhaps by the thousand: fetchers at rest begin when all are there."""
        self._hold_back(True)
        try:
            yield
        finally:
            self._hold_back(False)

    def _hold_back(self, is_held_back: bool) -> None:
        self._is_holding_back = is_held_back
        for fetcher in self._by_place.values():
            fetcher.is_held_back = is_held_back
            if not is_held_back and fetcher.partitions:
                fetcher.send_soon()

    def unfollow(self, partition: Partition) -> None:
        """Do not fetch it any more."""
        fetcher = self._of_partition.pop(partition.name, None)
        if fetcher is not None:
            fetcher.remove(partition)

    def close_idle(self) -> None:
        """After a wave of changes: drop the connections that serve nothing."""
        for place, fetcher in list(self._by_place.items()):
            if not fetcher.partitions:
                del self._by_place[place]
                fetcher.close()

    def stop(self) -> None:
        """The broker stops: fetch nothing any more."""
        for fetcher in self._by_place.values():
            fetcher.partitions = {}
        self._of_partition = {}
        self.close_idle()
