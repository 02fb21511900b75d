"""What a record under way is for; ``TransactionShard.settled`` acts on its outcome."""

from dataclasses import dataclass
from typing import TypeAlias

from ottla.coordinator.txn.moves import Initialisation
from ottla.coordinator.txn.transaction import StoredTransaction


@dataclass(frozen=True, slots=True)
class Initialise:
    """A producer gets its id and epoch once they are stored."""

    token: int
    transactional_id: str
    planned: Initialisation


@dataclass(frozen=True, slots=True)
class AddPartitions:
    """Partitions join a transaction; the request is answered with the outcome."""

    token: int
    transactional_id: str


@dataclass(frozen=True, slots=True)
class End:
    """An outcome is being stored; its markers go out once it is committed."""

    transactional_id: str
    token: int | None
    """Of EndTxn; none if the time is up."""
    fenced: StoredTransaction | None = None
    """As it was when its time was up."""


@dataclass(frozen=True, slots=True)
class Complete:
    """Every partition has its marker; the next transaction may begin once that is stored."""

    transactional_id: str


@dataclass(frozen=True, slots=True)
class Expire:
    """The tombstone of an unused transactional id."""


TransactionWrite: TypeAlias = Initialise | AddPartitions | End | Complete | Expire
