"""A task's transaction: opened by the first row, flushed, and left open for the driver to end."""

from contextlib import suppress

from ottla.client.blocking.client import Client
from ottla.client.config import ProducerConfig
from ottla.client.engine.engine import Engine
from ottla.client.engine.tasks import Operation, Signal, wait_for
from ottla.client.errors import TwoPhaseCommitRefused
from ottla.client.producing.transactions import Transactions
from ottla.model.ids import TopicPartition
from ottla.spark.exactly_once.decision import Prepared


class TaskTransaction:
    """One attempt's transaction, under a transactional id of its own."""

    def __init__(self, client: Client, config: ProducerConfig, name: str) -> None:
        self.name = name
        self._client = client
        self._changed = Signal()
        self._transactions = Transactions(client.engine, config, name, self)
        client.run(lambda _: self._transactions.init())
        self._transactions.begin()

    @property
    def producer(self) -> tuple[int, int]:
        """The id and the epoch that its batches carry."""
        return self._transactions.producer

    def added(self, partition: TopicPartition) -> Operation[None]:
        """Wait until the partition is in the transaction: then batches may be sent to it."""
        self._transactions.want([partition])
        while partition not in self._transactions.partitions:
            if self._transactions.error is not None:
                raise self._transactions.error
            yield from wait_for(self._changed)

    def prepare(self, records: int) -> Prepared:
        """All is flushed, and the driver may commit it; without a time-out, where brokers can keep it so."""
        with suppress(TwoPhaseCommitRefused):
            self._client.run(lambda _: self._transactions.prepare())
        producer, epoch = self.producer
        return Prepared(self.name, producer, epoch, records)

    # What ``Transactions`` asks of who sends

    def flush(self) -> Operation[None]:
        """The sender flushes before the transaction is prepared."""
        yield from ()

    def look_again(self) -> None:
        self._engine.fire(self._changed)

    def restart_numbers(self) -> None:
        """Only after an abort, which is the driver's."""

    @property
    def _engine(self) -> Engine:
        return self._client.engine
