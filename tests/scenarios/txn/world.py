"""A transaction shard, its log and a few producers, for scenarios and properties."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from ottla.config.areas import TransactionsConfig
from ottla.coordinator.shard import (
    Answer,
    Append,
    Effect,
    Moment,
    Producer,
    SendMarkers,
    StoredRecord,
    TransactionFenced,
)
from ottla.coordinator.txn.core import TransactionShard
from ottla.coordinator.txn.queries import describe, list_transactions
from ottla.coordinator.txn.records import state_record
from ottla.coordinator.txn.states import TransactionState
from ottla.coordinator.txn.transaction import NO_TIMEOUT_MS, StoredTransaction
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.wire.apis.init_producer_id import InitProducerIdResponse
from ottla.wire.stored import TRANSACTION_STATES

FIRST_PRODUCER_ID = 100


@dataclass
class Known:
    """A producer as it knows itself."""

    producer_id: int = -1
    epoch: int = -1


class TransactionWorld:
    """Time stands still until it is advanced; writes are committed at once unless they are held.

    Markers are written when ``marked`` says so. The name of a producer is its transactional id.
    """

    def __init__(self, config: TransactionsConfig | None = None) -> None:
        self.config = config or TransactionsConfig()
        self.now_ms = 1_000
        self.log: list[StoredRecord] = []
        self.held: list[Append] | None = None
        self.fail_next: ErrorCode = ErrorCode.NONE
        self.producers: dict[str, Known] = {}
        self.asked: dict[int, tuple[str, str]] = {}
        self.said: list[str] = []
        self.out_of_ids = False
        self._tokens = itertools.count(1)
        self._producer_ids = itertools.count(FIRST_PRODUCER_ID)
        self.shard = self._new_shard()

    def _new_shard(self) -> TransactionShard:
        return TransactionShard(self.config, self._new_producer_id)

    def _new_producer_id(self) -> int | None:
        return None if self.out_of_ids else next(self._producer_ids)

    @property
    def now(self) -> Moment:
        return Moment(self.now_ms, self.now_ms)

    # -- the scenario language ---------------------------------------------------------------

    def run(self, command: str) -> list[str]:
        verb, *words = command.split()
        names = [word for word in words if "=" not in word]
        options = dict(word.split("=", 1) for word in words if "=" in word)
        self.said = []
        getattr(self, f"do_{verb}")(*names, **options)
        return self.said

    def do_config(self, **options: str) -> None:
        self.config = TransactionsConfig(**{name: int(value) for name, value in options.items()})
        self.shard = self._new_shard()

    def do_init(self, name: str, timeout: str = "60000", keep: str = "", **options: str) -> None:
        """Without ``pid`` and ``epoch`` the client claims nothing."""
        self._init(name, self._producer(name, options) if options else None, timeout, keep)

    def do_reinit(self, name: str, timeout: str = "60000", keep: str = "") -> None:
        """As a producer does after an error: it names the id and epoch that it has."""
        self._init(name, self._producer(name, {}), timeout, keep)

    def _init(self, name: str, owner: Producer | None, timeout: str, keep: str) -> None:
        token = self._token(name, "init")
        timeout_ms = NO_TIMEOUT_MS if timeout == "none" else int(timeout)
        keeps = keep == "yes"
        self._perform(self.shard.initialise(token, name, owner, timeout_ms, self.now, keeps=keeps))

    def do_add(self, name: str, *partitions: str, **options: str) -> None:
        producer, added = self._producer(name, options), [_tp(each) for each in partitions]
        self._perform(self.shard.add_partitions(self._token(name, "add"), name, producer, added, self.now))

    def do_verify(self, name: str, partition: str, **options: str) -> None:
        producer = self._producer(name, options)
        codes = self.shard.verify(name, producer, [_tp(partition)])
        self.said.append(f"{name} verify {partition} {codes[_tp(partition)].name}")

    def do_commit(self, name: str, **options: str) -> None:
        self._end(name, is_commit=True, options=options)

    def do_abort(self, name: str, **options: str) -> None:
        self._end(name, is_commit=False, options=options)

    def _end(self, name: str, *, is_commit: bool, options: dict[str, str]) -> None:
        producer, token = self._producer(name, options), self._token(name, "end")
        self._perform(self.shard.end(token, name, producer, self.now, is_commit=is_commit))

    def do_marked(self, name: str, *partitions: str) -> None:
        self._perform(self.shard.marked(name, [_tp(each) for each in partitions], self.now))

    def do_advance(self, ms: str) -> None:
        """Let time pass, stopping at every deadline on the way."""
        until = self.now_ms + int(ms)
        while (deadline := self.shard.next_deadline_ms()) is not None and deadline <= until:
            self.now_ms = max(self.now_ms, deadline)
            self._perform(self.shard.tick(self.now))
        self.now_ms = until

    def do_no_ids(self) -> None:
        """The controller gives no more producer ids."""
        self.out_of_ids = True

    def do_hold(self) -> None:
        if self.held is None:
            self.held = []

    def do_release(self, error: str = "NONE") -> None:
        held, self.held = self.held or [], None
        for write in held:
            self.settle(write, ErrorCode[error])

    def do_fail(self, error: str) -> None:
        self.fail_next = ErrorCode[error]

    def do_failover(self) -> None:
        """The shard moves to another broker: what is in the log is all that is left."""
        self._perform(self.shard.unload(self.now))
        if self.held is not None:
            self.held = []
        self.shard = self.replayed()
        for _ in self.shard.restore():
            pass
        self._perform(self.shard.loaded(self.now))

    def do_stored(self, name: str, state: str, *partitions: str, **options: str) -> None:
        """Another coordinator left this record."""
        stored = StoredTransaction(
            producer_id=int(options.get("pid", "1")),
            epoch=int(options.get("epoch", "0")),
            timeout_ms=int(options.get("timeout", "60000")),
            state=TransactionState(TRANSACTION_STATES.index(state)),
            last_update_ms=self.now_ms,
            start_ms=int(options.get("start", "-1")),
            partitions=frozenset(map(_tp, partitions)),
        )
        self.log.append(state_record(name, stored))
        self.producers[name] = Known(stored.producer_id, stored.epoch)

    def do_show(self, name: str) -> None:
        row = describe(self.shard.transactions.get(name), name)
        if row.error_code:
            self.said.append(f"{name} {ErrorCode(row.error_code).name}")
            return
        names = [f"{topic.topic}-{number}" for topic in row.topics for number in topic.partitions]
        pending = " pending" if self.shard.is_pending(name) else ""
        self.said.append(
            f"{name} {row.transaction_state} pid={row.producer_id} epoch={row.producer_epoch}"
            f" start={row.transaction_start_time_ms} partitions={','.join(names)}{pending}"
        )

    def do_list(self, state: str = "", pid: str = "", older: str = "-1") -> None:
        rows = list_transactions(
            self.shard.transactions.values(),
            frozenset(state.split(",")) if state else frozenset(),
            frozenset({int(pid)}) if pid else frozenset(),
            int(older),
            self.now_ms,
        )
        self.said += [f"{row.transactional_id} {row.transaction_state}" for row in rows] or ["none listed"]

    # -- carrying out ------------------------------------------------------------------------

    def _producer(self, name: str, options: dict[str, str]) -> Producer:
        known = self.producers.get(name, Known())
        producer_id = int(options.get("pid", known.producer_id))
        return Producer(producer_id, int(options.get("epoch", known.epoch)))

    def _token(self, name: str, verb: str) -> int:
        token = next(self._tokens)
        self.asked[token] = name, verb
        return token

    def _perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Answer():
                    self._hear(*self.asked.pop(effect.token), effect.response)
                case Append() if self.held is not None:
                    self.held.append(effect)
                case Append():
                    error, self.fail_next = self.fail_next, ErrorCode.NONE
                    self.settle(effect, error)
                case SendMarkers():
                    self._send(effect)
                case TransactionFenced():
                    self.said.append(f"told {effect.transactional_id} is fenced: {effect.cause}")

    def settle(self, write: Append, error: ErrorCode) -> None:
        """The outcome of an append."""
        if error is ErrorCode.NONE:
            self.log.extend(write.records)
            self.said.append(f"log {write.reason}")
        self._perform(self.shard.appended(write.ticket, error, self.now))

    def _send(self, markers: SendMarkers) -> None:
        names = ",".join(f"{tp.topic}-{tp.partition}" for tp in sorted(markers.partitions))
        outcome = "commit" if markers.is_commit else "abort"
        self.said.append(f"markers {outcome} epoch={markers.producer.epoch} to {names}")

    def _hear(self, name: str, verb: str, response: InitProducerIdResponse | ErrorCode) -> None:
        if isinstance(response, ErrorCode):
            self.said.append(f"{name} {verb} {response.name}")
        elif response.error_code:
            self.said.append(f"{name} {verb} {ErrorCode(response.error_code).name}")
        else:
            self.producers[name] = Known(response.producer_id, response.producer_epoch)
            open_ = Known(response.ongoing_txn_producer_id, response.ongoing_txn_producer_epoch)
            of_open = f" open pid={open_.producer_id} epoch={open_.epoch}" if open_ != Known() else ""
            mine = self.producers[name]
            self.said.append(f"{name} {verb} pid={mine.producer_id} epoch={mine.epoch}{of_open}")

    def replayed(self) -> TransactionShard:
        """A shard that has only what the log says."""
        shard = self._new_shard()
        shard.apply(self.log)
        return shard


def _tp(text: str) -> TopicPartition:
    topic, partition = text.rsplit("-", 1)
    return TopicPartition(topic, int(partition))
