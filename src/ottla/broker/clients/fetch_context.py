"""What every fetch of this broker uses."""

from ottla.broker.metadata.image import MetadataImage
from ottla.broker.replicas.hosted import Partitions
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
