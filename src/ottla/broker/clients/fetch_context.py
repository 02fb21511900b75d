"""What every fetch of this broker uses."""

from ottla.broker.access.access import Access
from ottla.broker.clients.fetch_session import TOPIC_IDS_SINCE
from ottla.broker.metadata.image import MetadataImage
from ottla.broker.replicas.hosted import Partitions
from ottla.broker.replicas.readers import FetchEntry
from ottla.broker.replicas.throttles import Throttles
from ottla.broker.runtime.parked import Waiting
from ottla.broker.runtime.runtime import Runtime


class FetchContext:
    """One for all fetches."""

    __slots__ = ("clock", "metadata", "meters", "partitions", "runtime", "throttles", "waiting")

    def __init__(
        self,
        runtime: Runtime,
        waiting: Waiting,
        metadata: MetadataImage,
        partitions: Partitions,
        throttles: Throttles,
    ) -> None:
        self.runtime = runtime
        self.clock = runtime.clock
        self.meters = runtime.meters
        self.waiting = waiting
        self.metadata = metadata
        self.partitions = partitions
        self.throttles = throttles

    def is_forbidden(self, entry: FetchEntry, version: int, access: Access) -> bool:
        """Followers are brokers; of a topic that nobody knows by its id there is nothing to forbid."""
        if entry.reader.replica_id >= 0:
            return not access.cluster()
        name: str | None = entry.topic
        if version >= TOPIC_IDS_SINCE:
            name = self.metadata.topic_names.get(entry.topic_id)
        return name is not None and not access.topic(name)
