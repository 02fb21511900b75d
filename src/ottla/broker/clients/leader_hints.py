"""Where to go instead: leader and address, for clients that came to the wrong broker (KIP-951)."""

from ottla.broker.metadata.image import MetadataImage
from ottla.broker.replicas.hosted import Partitions
from ottla.model.ids import BrokerId


class LeaderHints:
    """Collects the leaders named in one answer, and their endpoints as the asking client sees them."""

    __slots__ = ("_listener", "_metadata", "_named", "_partitions")

    def __init__(self, partitions: Partitions, metadata: MetadataImage, listener: str) -> None:
        self._partitions = partitions
        self._metadata = metadata
        self._listener = listener
        self._named: dict[BrokerId, None] = {}

    def current_leader(self, topic: str, index: int) -> tuple[int, int]:
        """Leader and leader epoch: by the own partition if it is here, else by the metadata."""
        partition = self._partitions.find(topic, index)
        if partition is not None:
            leader, epoch = partition.leader_id, partition.leader_epoch
        else:
            known = self._metadata.topics.get(topic)
            info = known.partitions.get(index) if known is not None else None
            if info is None:
                return -1, -1
            leader, epoch = info.leader, info.leader_epoch
        self._named[leader] = None
        return leader, epoch

    def endpoints(self) -> list[tuple[int, str, int, str | None]]:
        """Id, host, port and rack of each named leader that is alive and has the client's listener."""
        found = []
        for broker in self._named:
            live = self._metadata.brokers.get(broker)
            endpoint = live.endpoints.get(self._listener) if live is not None else None
            if live is not None and endpoint is not None:
                found.append((int(broker), endpoint.host, endpoint.port, live.rack))
        return found
