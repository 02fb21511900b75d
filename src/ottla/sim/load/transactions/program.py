"""A process with a transactional id, on Ottla's client: one transaction after another, until it is fenced."""

from collections.abc import Callable
from functools import partial

from ottla.client.config import ProducerConfig
from ottla.client.engine.tasks import Operation, sleep
from ottla.client.errors import (
    AbortableError,
    BrokerError,
    ClientError,
    ProducerFenced,
    TimedOut,
    TransactionFailed,
)
from ottla.client.producing.batches import Delivery
from ottla.client.producing.producer import ProducerCore
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.records.record import Record
from ottla.sim.load.clients import Surroundings
from ottla.sim.load.own_client import OwnClient
from ottla.sim.truth.history import Sent, Violation
from ottla.sim.truth.transactions import Attempt, Phase, TransactionTruth

TIMEOUTS_MS = (2_000, 5_000, 20_000)
PATIENT_MS = 3_600_000
HASTY_MS = 4_000

FORGOTTEN = (ErrorCode.INVALID_PRODUCER_ID_MAPPING, ErrorCode.UNKNOWN_PRODUCER_ID)
"""The id expired: whether its last transaction was committed before that, its program cannot learn."""


class Program(OwnClient):
    """What all kinds have in common; ``_work`` is one step of a program's work."""

    def __init__(
        self,
        around: Surroundings,
        name: str,
        transactional_id: str,
        truth: TransactionTruth,
        ended: Callable[["Program"], None],
    ) -> None:
        super().__init__(around, name)
        self.transactional_id = transactional_id
        self.truth = truth
        self.is_idle = False
        """It was asked to stop, and has ended its last transaction."""
        self._ended = ended
        self._order = 0
        chance = self.world.chance
        self.timeout_ms = chance.choice(TIMEOUTS_MS)
        config = ProducerConfig(
            transactional_id=transactional_id,
            transaction_timeout_ms=self.timeout_ms,
            batch_size=chance.choice([200, 16_384]),
            linger_ms=chance.choice([0, 0, 20]),
            max_in_flight_requests_per_connection=self.world.between(1, 5),
            delivery_timeout_ms=chance.choice([PATIENT_MS, HASTY_MS]),
            max_block_ms=HASTY_MS,
        )
        self.producer = ProducerCore(self.engine, config)

    def start(self) -> None:
        self.enter(lambda: self.engine.spawn(self._life()))

    def _life(self) -> Operation[None]:
        transactions = self.producer.transactions
        try:
            yield from self._until_done(transactions.init)
            self._note_epoch()
            while not self.is_idle:
                yield from self._work()
                yield from sleep(self.world.between(1, 300))
        except ProducerFenced:
            self.world.note(b"fenced")
            self.world.after(0, partial(self._ended, self))
        except ClientError as error:
            raise Violation(f"{self.host} cannot go on: {type(error).__name__}: {error}") from error

    def _work(self) -> Operation[None]:
        raise NotImplementedError

    def _until_done(self, step: Callable[[], Operation[None]]) -> Operation[None]:
        """After ``TimedOut`` the same call goes on where it was."""
        while True:
            try:
                yield from step()
            except TimedOut as error:
                self.world.note(str(error).encode())
            else:
                return

    def _transaction(self, body: Callable[[Attempt], Operation[bool]]) -> Operation[bool]:
        """One transaction, which ``body`` fills; whether it was committed."""
        transactions = self.producer.transactions
        attempt = self.truth.began(self.host)
        transactions.begin()
        try:
            if (yield from body(attempt)):
                attempt.phase = Phase.COMMITTING
                yield from self._until_done(transactions.commit)
                self.truth.committed(attempt)
                self._note_epoch()
                return True
        except AbortableError as error:
            self.world.note(str(error).encode())
            if not _is_forgotten(error):
                attempt.phase = Phase.ABORTED
        else:
            attempt.phase = Phase.ABORTED
        yield from self._until_done(transactions.abort)
        self.truth.aborts += 1
        self._note_epoch()
        return False

    def _send(self, attempt: Attempt, partition: TopicPartition, text: str = "") -> None:
        self._order += 1
        value = f"{self.host}/{self._order}|{text}".encode()
        sent = Sent(value, self.host, self._order, partition)
        self.truth.will_write(attempt, sent)
        delivery = self.producer.send(partition.topic, Record(None, value), partition.partition)
        delivery.when_done(partial(self._decided, sent))

    def _decided(self, sent: Sent, delivery: Delivery) -> None:
        if delivery.error is None:
            self.truth.history.acked(sent, delivery.offset if delivery.offset >= 0 else None)
            self.world.note(b"%d@%d" % (sent.order, delivery.offset))

    def _note_epoch(self) -> None:
        self.truth.epoch_given(self.producer.transactions.producer, self.transactional_id, self.host)


def _is_forgotten(error: TransactionFailed) -> bool:
    return isinstance(error.cause, BrokerError) and error.cause.code in FORGOTTEN
