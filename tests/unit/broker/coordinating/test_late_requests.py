"""No request that comes late, or twice, leaves a transaction open for ever (KIP-890, first part)."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial

from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.config.areas import TransactionsConfig
from ottla.coordinator.shard import Answer, Append, Effect, Moment, Producer, SendMarkers
from ottla.coordinator.txn.core import TransactionShard
from ottla.model.errors import ErrorCode
from ottla.records.batch import read_header
from ottla.storage.log.outcomes import Appended
from ottla.wire.apis.init_producer_id import InitProducerIdResponse
from support.logs.builders import ORDERS_0, a_batch, a_log, end_transaction

ID = "id"
TIMEOUT_MS = 5_000
CONFIG = TransactionsConfig(transaction_abort_timed_out_transaction_cleanup_interval_ms=1_000)
STEPS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 63), st.booleans()), max_size=40)


class World:
    """A coordinator and a partition; what goes to either arrives when a step says so, some of it twice."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.log = a_log()
        self.tokens = itertools.count(1)
        self.producer_ids = itertools.count(100)
        self.under_way: list[Callable[[], None]] = []
        """Requests: the network may repeat them, and does not keep their order."""
        self.inside: list[Callable[[], None]] = []
        """Steps inside a broker: each is taken once."""
        self.owner = Producer(-1, -1)
        self.sequence = 0
        self.written = 0
        self.shard = TransactionShard(CONFIG, lambda: next(self.producer_ids))
        self.perform(self.shard.loaded(self.now))

    @property
    def now(self) -> Moment:
        return Moment(self.now_ms, self.now_ms)

    def perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Answer(response=InitProducerIdResponse() as response) if not response.error_code:
                    self.owner, self.sequence = Producer(response.producer_id, response.producer_epoch), 0
                case Append():
                    self.inside.append(partial(self.stored, effect.ticket))
                case SendMarkers():
                    self.under_way.append(partial(self.mark, effect))

    def stored(self, ticket: int) -> None:
        self.perform(self.shard.appended(ticket, ErrorCode.NONE, self.now))

    def mark(self, effect: SendMarkers) -> None:
        """The answer of a repeated request is heard as well."""
        producer_id, epoch = effect.producer
        end_transaction(self.log, producer_id, is_commit=effect.is_commit, producer_epoch=epoch)
        self.perform(self.shard.marked(effect.transactional_id, effect.partitions, self.now))

    # -- what the program sends --------------------------------------------------------------

    def init(self) -> None:
        self.under_way.append(
            lambda: self.perform(self.shard.initialise(next(self.tokens), ID, None, TIMEOUT_MS, self.now))
        )

    def add(self) -> None:
        owner = self.owner
        self.under_way.append(
            lambda: self.perform(
                self.shard.add_partitions(next(self.tokens), ID, owner, [ORDERS_0], self.now)
            )
        )

    def end(self, *, is_commit: bool) -> None:
        owner = self.owner
        self.under_way.append(
            lambda: self.perform(self.shard.end(next(self.tokens), ID, owner, self.now, is_commit=is_commit))
        )

    def produce(self) -> None:
        self.under_way.append(partial(self.produced, self.owner, self.sequence))
        self.sequence += 1

    # -- the leader --------------------------------------------------------------------------

    def produced(self, owner: Producer, sequence: int) -> None:
        """A leader asks the coordinator, unless the transaction is open there already."""
        token = self.log.producers.start_verification(owner.producer_id, owner.epoch, sequence, self.now_ms)
        if token is None:
            self.write(owner, sequence, None)
        else:
            self.inside.append(partial(self.verify, owner, sequence, token))

    def verify(self, owner: Producer, sequence: int, token: int) -> None:
        if self.shard.verify(ID, owner, [ORDERS_0])[ORDERS_0] is ErrorCode.NONE:
            self.inside.append(partial(self.write, owner, sequence, token))

    def write(self, owner: Producer, sequence: int, token: int | None) -> None:
        batch = a_batch(
            producer_id=owner.producer_id,
            producer_epoch=owner.epoch,
            sequence=sequence,
            is_transactional=True,
        )
        outcome = self.log.append_as_leader(
            batch,
            read_header(batch),
            leader_epoch=0,
            now_ms=self.now_ms,
            verification=token,
            must_be_verified=True,
        )
        self.written += isinstance(outcome, Appended)

    # -- time --------------------------------------------------------------------------------

    def step(self, kind: int, which: int, is_repeated: bool) -> None:
        match kind:
            case 0:
                self.produce()
            case 1:
                self.end(is_commit=which % 2 == 0)
            case 2:
                (self.add, self.init, partial(self.pass_time, 1_000))[which % 3]()
            case _ if self.inside or self.under_way:
                place = which % (len(self.inside) + len(self.under_way))
                if place < len(self.inside):
                    self.inside.pop(place)()
                else:
                    place -= len(self.inside)
                    arrived = self.under_way[place] if is_repeated else self.under_way.pop(place)
                    arrived()

    def pass_time(self, ms: int) -> None:
        self.now_ms += ms
        self.perform(self.shard.tick(self.now))

    def arrive(self) -> None:
        """Everything that is under way arrives."""
        while self.inside or self.under_way:
            (self.inside or self.under_way).pop(0)()

    def come_to_rest(self) -> None:
        """Everything arrives at last; then whatever is open takes too long."""
        for _ in range(2):
            self.arrive()
            self.pass_time(TIMEOUT_MS + 2_000)

    def is_stable(self) -> bool:
        self.log.set_high_watermark(self.log.end_offset)
        return self.log.last_stable_offset == self.log.end_offset


def begun() -> World:
    """A producer that has its id."""
    world = World()
    world.init()
    world.come_to_rest()
    return world


@settings(max_examples=400, deadline=None)
@given(STEPS)
def test_late_and_repeated_requests_leave_no_transaction_open(steps: list[tuple[int, int, bool]]) -> None:
    world = begun()
    world.add()
    world.arrive()

    for kind, which, is_repeated in steps:
        world.step(kind, which, is_repeated)
    world.come_to_rest()
    world.come_to_rest()

    assert world.is_stable()


def test_a_batch_that_is_verified_and_overtaken_by_the_marker_is_not_written() -> None:
    """KAFKA-14884: the answer was true when it was given."""
    world = begun()
    world.add()
    world.under_way.pop()()
    world.inside.pop()()
    world.produce()
    world.under_way.pop()()
    world.inside.pop()()  # verified
    world.end(is_commit=False)
    world.under_way.pop()()
    world.inside.pop(1)()  # the outcome is stored
    world.under_way.pop()()  # the marker is written

    world.inside.pop(0)()

    assert world.written == 0


def test_a_batch_that_comes_after_its_transaction_is_not_written() -> None:
    """KAFKA-12671, KAFKA-14053: what KIP-890 is for."""
    world = begun()
    world.add()
    world.arrive()
    world.produce()
    late = world.under_way.pop()
    world.end(is_commit=True)
    world.arrive()

    late()
    world.arrive()

    assert world.written == 0
    assert world.is_stable()
