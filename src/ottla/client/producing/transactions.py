"""A producer's transactions: where it stands, and what it asks the coordinators. Sans-IO.

A record is sent once its partition is in the transaction; a record that cannot be delivered makes the
transaction abortable. After an abort that an error made necessary the epoch is raised (KIP-360), so that no
batch of the aborted transaction can arrive late.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from typing import Protocol

from ottla.client.admin.asking import GROUP, TRANSACTION
from ottla.client.config import ProducerConfig
from ottla.client.engine.engine import Engine
from ottla.client.engine.tasks import Operation, Task, wait_for
from ottla.client.errors import (
    AbortableError,
    BrokerError,
    ClientError,
    FatalError,
    TimedOut,
    TransactionAborted,
    TransactionFailed,
    TwoPhaseCommitRefused,
    WrongTransactionState,
)
from ottla.client.fetching.decoding import Position
from ottla.client.group.metadata import GroupMetadata
from ottla.client.producing import transaction_requests as requests
from ottla.client.producing.coordinator import Coordinator
from ottla.client.producing.prepared import Prepared
from ottla.client.producing.transaction_errors import Step, as_raised, is_refused_two_phase_commit
from ottla.model.ids import TopicPartition
from ottla.records.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from ottla.wire.apis.add_offsets_to_txn import AddOffsetsToTxnResponse
from ottla.wire.apis.add_partitions_to_txn import AddPartitionsToTxnResponse
from ottla.wire.apis.end_txn import EndTxnResponse
from ottla.wire.apis.init_producer_id import InitProducerIdResponse
from ottla.wire.apis.txn_offset_commit import TxnOffsetCommitResponse

NO_PRODUCER = (NO_PRODUCER_ID, NO_PRODUCER_EPOCH)


class State(Enum):
    """Where a producer stands, and what its program may do next."""

    NEW = "init_transactions comes first"
    READY = "no transaction is open: begin_transaction comes first"
    OPEN = "a transaction is open: commit or abort it first"
    PREPARED = "a transaction is prepared: commit, abort or complete it first"
    PREPARING = "the transaction is being prepared: call prepare_transaction again until it returns, or abort"
    COMMITTING = "the transaction is being committed: call commit_transaction again until it returns"
    ABORTING = "the transaction is being aborted: call abort_transaction again until it returns"
    ABORTABLE = "the transaction has failed: abort it first"
    FATAL = "this producer cannot be used any more"


_SENDING = (State.OPEN, State.PREPARING, State.COMMITTING)


class Sending(Protocol):
    """What transactions need of the producer."""

    def flush(self) -> Operation[None]:
        """Wait until every record sent before is delivered or has failed."""
        ...

    def look_again(self) -> None:
        """What may be sent has changed."""
        ...

    def restart_numbers(self) -> None:
        """A new epoch: sequences begin at 0 in every partition."""
        ...


class Transactions:
    """The transactions of one producer, one after another."""

    def __init__(
        self, engine: Engine, config: ProducerConfig, transactional_id: str, sending: Sending
    ) -> None:
        self.state = State.NEW
        self.error: TransactionFailed | None = None
        """Why the state is ``ABORTABLE`` or ``FATAL``."""
        self.producer = NO_PRODUCER
        self.partitions: set[TopicPartition] = set()
        """The partitions in the transaction: their batches may be sent."""
        self.prepared: Prepared | None = None
        """The transaction that waits for a decision."""
        self._is_resumed = False
        self._engine = engine
        self._config = config
        self._id = transactional_id
        self._sending = sending
        self._groups: set[str] = set()
        self._wanted: dict[TopicPartition, None] = {}
        self._adding: Task[None] | None = None
        self._needs_new_epoch = False
        self._needs_renewal = False
        """The next transaction begins with a new epoch: a request of the last one may still be on its way and
        would act on it (KAFKA-17754), or the id has no time-out since that one was prepared."""
        self._under_way: str | None = None
        self._coordinator = Coordinator(engine, transactional_id, TRANSACTION)
        self._group_coordinators: dict[str, Coordinator] = {}

    # What users do

    def init(self, *, keep_prepared: bool = False) -> Operation[None]:
        """Take the transactional id over: an open transaction of the producer before is aborted, or kept."""
        with self._alone("init_transactions", State.NEW):
            if keep_prepared:
                yield from self._keep(NO_PRODUCER, without_timeout=False)
            else:
                yield from self._init_producer(NO_PRODUCER)
            self.state = State.READY if self.prepared is None else State.PREPARED

    def begin(self) -> None:
        """Open a transaction."""
        with self._alone("begin_transaction", State.READY):
            self.state = State.OPEN

    def send_offsets(
        self, offsets: Mapping[TopicPartition, Position], group: GroupMetadata
    ) -> Operation[None]:
        """Commit a group's offsets with the transaction."""
        with self._alone("send_offsets_to_transaction", State.OPEN):
            if not offsets:
                return
            yield from self._with_renewal()
            if group.group_id not in self._groups:
                request = requests.add_offsets(self._id, self.producer, group.group_id)
                yield from self._ask(
                    Step.ADD_OFFSETS, request, AddOffsetsToTxnResponse, lambda answer: [answer.error_code]
                )
                self._groups.add(group.group_id)
            coordinator = self._group_coordinators.setdefault(
                group.group_id, Coordinator(self._engine, group.group_id, GROUP)
            )
            yield from self._noting(
                coordinator.ask(
                    Step.COMMIT_OFFSETS,
                    requests.commit_offsets(self._id, self.producer, offsets, group),
                    TxnOffsetCommitResponse,
                    requests.offset_codes,
                    self._config.max_block_ms,
                )
            )

    def prepare(self) -> Operation[Prepared]:
        """Deliver all records, then have the coordinator keep them until somebody decides.

        The transaction had its ordinary time-out so far. Now it has none, and a new epoch owns it; the
        coordinator knows what is asked again under the old one because an answer was lost (KIP-360).
        """
        with self._alone("prepare_transaction", State.OPEN, State.PREPARING):
            self.state = State.PREPARING
            yield from self._delivered()
            prepared = Prepared(*self.producer)
            if self.partitions or self._groups:
                yield from self._keep(self.producer, without_timeout=True)
                if self.prepared != prepared:
                    raise self._gone(prepared)
            self.prepared = prepared
            self.state = State.PREPARED
            return prepared

    def complete(self, decided: Prepared) -> Operation[bool]:
        """Commit the prepared transaction if it is the one decided on, else abort it; whether it committed.

        Where none is open there is nothing to do: it was completed before.
        """
        if self.state is State.READY:
            return False
        self._check("complete_transaction", State.PREPARED, State.COMMITTING, State.ABORTING)
        is_decided = self.prepared == decided
        yield from self.commit() if is_decided else self.abort()
        return is_decided

    def commit(self) -> Operation[None]:
        """Deliver all records, then commit. After ``TimedOut`` it may be called again."""
        with self._alone("commit_transaction", State.OPEN, State.PREPARED, State.COMMITTING):
            self.state = State.COMMITTING
            yield from self._delivered()
            yield from self._end(commit=True)
            self._ended()

    def abort(self) -> Operation[None]:
        """Drop what is not sent, then abort. After ``TimedOut`` it may be called again."""
        ends = (State.OPEN, State.PREPARING, State.PREPARED, State.ABORTABLE, State.ABORTING)
        with self._alone("abort_transaction", *ends):
            self.state = State.ABORTING
            yield from self._sending.flush()
            yield from self._added()
            try:
                yield from self._end(commit=False)
            except AbortableError:
                # The coordinator has forgotten the producer id, and with it the transaction.
                self._needs_new_epoch = True
            if self._needs_new_epoch:
                yield from self._init_producer(self.producer)
            self._ended()

    @property
    def must_abort(self) -> bool:
        """Whether a transaction is open that nobody has begun to end."""
        return self.state in (State.OPEN, State.PREPARING, State.ABORTABLE)

    # What the producer asks and tells

    def check_send(self) -> None:
        """Raise unless records may be sent."""
        self._check("send", State.OPEN)

    @property
    def refusal(self) -> ClientError | None:
        """Why batches that are not sent yet never will be; ``None`` if they will."""
        if self.state in _SENDING:
            return None
        return self.error or TransactionAborted("the transaction was aborted before the record was sent")

    def want(self, partitions: Iterable[TopicPartition]) -> None:
        """These partitions have batches: add those that are not in the transaction."""
        self._wanted.update(dict.fromkeys(each for each in partitions if each not in self.partitions))
        if self._wanted and self._adding is None:
            self._adding = self._engine.spawn(self._add_wanted())

    def delivery_failed(self, error: ClientError, *, was_sent: bool) -> None:
        """A record of the transaction was not delivered."""
        self._needs_new_epoch |= was_sent
        if self.state in _SENDING:
            self._fail(as_raised(Step.PRODUCE, error))

    # Requests

    def _init_producer(self, producer: tuple[int, int]) -> Operation[None]:
        request = requests.init_producer(self._id, self._config.transaction_timeout_ms, producer)
        answer = yield from self._ask(Step.INIT, request, InitProducerIdResponse, requests.init_codes)
        self._renewed(answer)

    def _keep(self, producer: tuple[int, int], *, without_timeout: bool) -> Operation[None]:
        """A new epoch, without an end to the transaction that is open; the coordinator may not know how."""
        request = requests.init_producer(
            self._id,
            self._config.transaction_timeout_ms,
            producer,
            keeps=True,
            without_timeout=without_timeout,
        )
        asking = self._coordinator.ask(
            Step.INIT, request, InitProducerIdResponse, requests.init_codes, self._config.max_block_ms
        )
        try:
            answer = yield from asking
        except FatalError as error:
            if is_refused_two_phase_commit(error):
                self.state = State.OPEN if without_timeout else State.NEW
                raise TwoPhaseCommitRefused(error.cause) from error
            self._fail(error)
            raise
        self._renewed(answer)

    def _renewed(self, answer: InitProducerIdResponse) -> None:
        """The owner of a new epoch numbers its batches from 0."""
        self.producer = (answer.producer_id, answer.producer_epoch)
        ongoing = Prepared(answer.ongoing_txn_producer_id, answer.ongoing_txn_producer_epoch)
        self.prepared = None if ongoing.epoch == NO_PRODUCER_EPOCH else ongoing
        self._needs_renewal = self._is_resumed = self.prepared is not None
        for coordinator in (self._coordinator, *self._group_coordinators.values()):
            coordinator.is_in_doubt = False
        self._sending.restart_numbers()

    def _gone(self, prepared: Prepared) -> TransactionFailed:
        error = FatalError(
            Step.INIT.value, TransactionAborted(f"transaction {prepared} is not open any more")
        )
        self._fail(error)
        return error

    def _with_renewal(self) -> Operation[None]:
        """Before a transaction begins that needs a new epoch."""
        if self._needs_renewal and self._adding is None:
            self._adding = self._engine.spawn(self._add_wanted())
        while self._needs_renewal and self.error is None:
            yield from self._added()
        if self.error is not None:
            raise self.error

    def _delivered(self) -> Operation[None]:
        """Wait until every record is in the log; raise if one is not."""
        yield from self._sending.flush()
        yield from self._added()
        if self.error is not None:
            raise self.error

    def _add_wanted(self) -> Operation[None]:
        """Add partitions until none is wanted; a failure is noted as the transaction's."""
        try:
            if self._needs_renewal and self.prepared is None:
                yield from self._renew()
            while self._wanted and self.state in _SENDING:
                partitions = list(self._wanted)
                request = requests.add_partitions(self._id, self.producer, partitions)
                operation = self._coordinator.ask(
                    Step.ADD_PARTITIONS,
                    request,
                    AddPartitionsToTxnResponse,
                    requests.partition_codes,
                    version_max=requests.ADD_PARTITIONS_VERSION_MAX,
                    is_wanted=self._adds_on,
                )
                yield from self._noting(operation)
                self.partitions.update(partitions)
                for partition in partitions:
                    del self._wanted[partition]
                self._sending.look_again()
        except TransactionFailed:
            pass
        finally:
            self._adding = None

    def _renew(self) -> Operation[None]:
        request = requests.init_producer(self._id, self._config.transaction_timeout_ms, self.producer)
        asking = self._coordinator.ask(
            Step.INIT, request, InitProducerIdResponse, requests.init_codes, is_wanted=self._adds_on
        )
        self._renewed((yield from self._noting(asking)))

    def _adds_on(self, error: ClientError) -> bool:
        """While records wait for it; later only to learn whether a lost request has begun the transaction."""
        is_in_doubt = not isinstance(error, BrokerError)
        return self.state in _SENDING or (is_in_doubt and self.state is not State.FATAL)

    def _added(self) -> Operation[None]:
        """Wait for the request that adds partitions, if one is under way."""
        deadline_ms = self._engine.now_ms + self._config.max_block_ms
        while self._adding is not None:
            left_ms = deadline_ms - self._engine.now_ms
            if left_ms <= 0:
                raise TimedOut(Step.ADD_PARTITIONS.value, self._config.max_block_ms, None)
            yield from wait_for(self._adding.done, left_ms)

    def _end(self, *, commit: bool) -> Operation[None]:
        """End the transaction; the coordinator knows of none if nothing was added."""
        if self.partitions or self._groups or self._is_resumed:
            request = requests.end(self._id, self.producer, commit=commit)
            yield from self._ask(Step.END, request, EndTxnResponse, lambda answer: [answer.error_code])

    def _ask(
        self,
        step: Step,
        request: requests.Request,
        response: type[requests.R],
        codes: requests.Codes[requests.R],
    ) -> Operation[requests.R]:
        return self._noting(self._coordinator.ask(step, request, response, codes, self._config.max_block_ms))

    def _noting(self, operation: Operation[requests.R]) -> Operation[requests.R]:
        try:
            return (yield from operation)
        except TransactionFailed as error:
            self._fail(error)
            raise

    # States

    @contextmanager
    def _alone(self, what: str, *states: State) -> Iterator[None]:
        """One operation at a time, and only in these states."""
        if self._under_way is not None:
            raise WrongTransactionState(f"{what}: {self._under_way} is under way; wait for it")
        self._check(what, *states)
        self._under_way = what
        try:
            yield
        finally:
            self._under_way = None

    def _check(self, what: str, *states: State) -> None:
        if self.state in states:
            return
        if self.error is not None:
            raise self.error
        raise WrongTransactionState(f"{what}: {self.state.value}")

    def _fail(self, error: TransactionFailed) -> None:
        if isinstance(error, FatalError):
            self.state, self.error = State.FATAL, error
        elif self.state in (*_SENDING, State.ABORTING):
            self.state, self.error = State.ABORTABLE, error
            self._needs_new_epoch = True
        self._sending.look_again()

    def _ended(self) -> None:
        self.state, self.error = State.READY, None
        asked = (self._coordinator, *self._group_coordinators.values())
        self._needs_renewal |= any(coordinator.is_in_doubt for coordinator in asked)
        self._needs_new_epoch = False
        self.prepared = None
        self._is_resumed = False
        self.partitions.clear()
        self._groups.clear()
        self._wanted.clear()
