"""What all partitions of a broker share: one object, however many partitions there are."""

from collections.abc import Callable

from ottla.broker.replicas.isr_proposals import IsrProposals
from ottla.broker.replicas.producer_order import ProducerOrder
from ottla.broker.runtime.parked import Waiting
from ottla.broker.runtime.runtime import Runtime
from ottla.model.errors import LogDirectoryFailed
from ottla.model.ids import BrokerId


class PartitionContext:
    """A partition reads the clock, counts, proposes ISRs, and wakes parked requests."""

    __slots__ = (
        "clock",
        "directory_failed",
        "isr_proposals",
        "live",
        "meters",
        "producer_order",
        "runtime",
        "waiting",
    )

    def __init__(
        self,
        runtime: Runtime,
        waiting: Waiting,
        isr_proposals: IsrProposals,
        producer_order: ProducerOrder,
    ) -> None:
        self.runtime = runtime
        self.clock = runtime.clock
        self.meters = runtime.meters
        self.waiting = waiting
        self.isr_proposals = isr_proposals
        self.producer_order = producer_order
        self.live: frozenset[BrokerId] = frozenset()
        """The brokers that are alive according to the metadata."""
        self.directory_failed: Callable[[LogDirectoryFailed], None]
        """Takes all partitions of a log directory offline."""
