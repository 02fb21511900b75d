"""Who writes: a producer id and its sequences, kept from task to task as long as all goes well.

Every partition keeps each id that wrote to it for a day; a new one for every task of a trigger would be
millions. What a failed task has sent is unknown, so its id is never used again.
"""

from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from ottla.client.blocking.client import Client
from ottla.client.config import ProducerConfig
from ottla.client.producing.producer_id import obtain_producer_id
from ottla.model.ids import TopicPartition

NOBODY = (-1, -1)


@dataclass(slots=True)
class Identity:
    """A producer id, its epoch, and the next sequence in each partition."""

    producer: tuple[int, int]
    sequences: dict[TopicPartition, int] = field(default_factory=dict)

    @property
    def is_numbered(self) -> bool:
        """Whether its batches have sequences."""
        return self.producer != NOBODY

    def become(self, producer: tuple[int, int]) -> None:
        """Another producer id: sequences begin anew."""
        self.producer = producer
        self.sequences.clear()


_kept: WeakKeyDictionary[Client, Identity] = WeakKeyDictionary()


def borrow_identity(client: Client, config: ProducerConfig) -> Identity:
    """The process's identity in this cluster, or a new one while another task has it."""
    if not config.is_idempotent:
        return Identity(NOBODY)
    kept = _kept.pop(client, None)
    return kept or Identity(client.run(obtain_producer_id, config.max_block_ms))


def keep_identity(client: Client, identity: Identity) -> None:
    """The task has ended, and all that it sent was acknowledged."""
    if identity.is_numbered:
        _kept[client] = identity
