"""What ``__ottla_sinks`` says of a sink: the batch that was decided last, and its transactions."""

from dataclasses import dataclass, replace
from enum import Enum

import msgspec

SINKS_TOPIC = "__ottla_sinks"
"""Compacted; the key is the sink's ``transactionalIdPrefix``."""


class Batch(msgspec.Struct, frozen=True):
    """Which rows are meant: a query's micro-batch, or an application's version of them."""

    query: str
    number: int

    def __str__(self) -> str:
        return f"batch {self.number} of {self.query}"


class Prepared(msgspec.Struct, frozen=True):
    """A task's transaction: all is flushed, and it is open."""

    id: str
    producer: int
    epoch: int
    records: int


class State(Enum):
    """How far a decided batch is."""

    DECIDED = "decided"
    """It counts, whatever happens: what is not committed yet will be."""
    DONE = "done"
    UNDONE = "undone"
    """Some of its transactions were aborted before they could be committed; ``undone`` says which."""


class Decision(msgspec.Struct, frozen=True):
    """The record. There is no other memory of a sink."""

    batch: Batch
    state: State
    transactions: tuple[Prepared, ...]
    undone: tuple[str, ...] = ()

    def covers(self, batch: Batch) -> bool:
        """Whether the rows of a batch are written: batches of a query are decided in order."""
        return self.batch.query == batch.query and batch.number <= self.batch.number

    def as_done(self) -> "Decision":
        """All is committed; what the transactions were is of no use any more."""
        return Decision(self.batch, State.DONE, ())

    def as_undone(self, ids: tuple[str, ...]) -> "Decision":
        """Some transactions are gone."""
        return msgspec.structs.replace(self, state=State.UNDONE, undone=ids)


@dataclass(frozen=True, slots=True)
class Driver:
    """The producer that writes decisions. Whoever starts a batch takes it over, which fences all before."""

    producer: int
    epoch: int
    written: int = 0
    """How many decisions it has written: the next one's sequence."""

    def after_write(self) -> "Driver":
        return replace(self, written=self.written + 1)


@dataclass(frozen=True, slots=True)
class Start:
    """What the tasks of a batch, and its commit, know of its start."""

    driver: Driver
    last: Decision | None

    def skips(self, batch: Batch) -> bool:
        """Whether the batch is written already: then as a whole, for its rows may lie in other tasks now."""
        return self.last is not None and self.last.covers(batch)


encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder(Decision).decode
