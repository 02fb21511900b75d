"""What a coordinator knows of one transactional id."""

from dataclasses import dataclass, field

from ottla.coordinator.shard import Producer
from ottla.coordinator.txn.states import TransactionState
from ottla.model.ids import TopicPartition

NO_PRODUCER_ID = -1
NO_EPOCH = -1
NO_TIME = -1
NO_TIMEOUT_MS = 0x7FFF_FFFF
"""The time-out of a transaction that somebody else decides (KIP-939): none ends it."""


@dataclass(frozen=True, slots=True)
class StoredTransaction:
    """The value of a record in ``__transaction_state``."""

    producer_id: int
    epoch: int
    timeout_ms: int
    state: TransactionState
    last_update_ms: int
    start_ms: int = NO_TIME
    partitions: frozenset[TopicPartition] = frozenset()
    resumed_by: Producer | None = None
    """Who took the open transaction over; it keeps the id and epoch under which it was written."""

    @property
    def owner(self) -> Producer:
        """Whose requests count."""
        return self.resumed_by or self.producer

    @property
    def producer(self) -> Producer:
        """Who writes, or wrote, the records of the transaction."""
        return Producer(self.producer_id, self.epoch)

    @property
    def is_prepared(self) -> bool:
        """Whether it waits for the decision of somebody else, for as long as that takes."""
        return self.state is TransactionState.ONGOING and self.timeout_ms == NO_TIMEOUT_MS


@dataclass(slots=True)
class Transaction:
    """All but ``stored`` is live: it is not in the log, and a load begins without it."""

    transactional_id: str
    stored: StoredTransaction
    """What the log says. Only ``apply`` changes it."""
    last_producer_id: int = NO_PRODUCER_ID
    last_epoch: int = NO_EPOCH
    """The epoch that its owner had bumped last: if it asks again, it gets the same answer."""
    shown_start_ms: int = NO_TIME
    """When the last transaction began. It outlives the record of a new epoch, which stores none."""
    unmarked: set[TopicPartition] = field(default_factory=set)
    """While the outcome is prepared: the partitions that have no marker yet."""
    timer_at_ms: int | None = None
    """When the time-out is looked at next."""
