"""A producer for ordinary programs: I/O happens while you send, flush or wait."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

from ottla.client.config import ProducerConfig
from ottla.client.errors import BufferFull, ClientError, TimedOut
from ottla.client.fetching.decoding import Position
from ottla.client.group.metadata import GroupMetadata
from ottla.client.producing.batches import Delivery
from ottla.client.producing.prepared import Prepared
from ottla.client.producing.producer import ProducerCore
from ottla.client.producing.transaction_requests import as_positions
from ottla.model.ids import TopicPartition
from ottla.records.record import Record, RecordHeaders

if TYPE_CHECKING:
    from ottla.client.blocking.client import Client


class Producer:
    """Sends records. I/O happens while you send, flush or wait."""

    def __init__(self, client: "Client", config: ProducerConfig) -> None:
        self._client = client
        self._core = ProducerCore(client.engine, config)
        self._buffered_at_last_turn = 0

    def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: RecordHeaders = (),
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> Delivery:
        """Take a record; after ``flush`` or ``wait`` the delivery has its offset or its error."""
        if timestamp_ms is None:
            timestamp_ms = time.time_ns() // 1_000_000
        record = Record(key, value, headers, timestamp_ms)
        self._client.engine.catch_up(self._client.now_ms())
        try:
            delivery = self._core.send(topic, record, partition)
        except BufferFull:
            delivery = self._send_when_there_is_room(topic, record, partition)
        if self._core.buffered_bytes - self._buffered_at_last_turn >= self._core.config.batch_size:
            self._client.turn(0)
            self._buffered_at_last_turn = self._core.buffered_bytes
        return delivery

    def wait(self, delivery: Delivery) -> Delivery:
        """Wait until a record is delivered; raise if it was not."""
        self._client.run_until(lambda: delivery.is_done)
        if delivery.error is not None:
            raise delivery.error
        return delivery

    def flush(self) -> None:
        """Wait until every record sent so far is delivered or has failed."""
        self._client.run(lambda _: self._core.flush())
        self._buffered_at_last_turn = self._core.buffered_bytes

    def close(self) -> None:
        """Flush, or abort the transaction that is open."""
        self._client.run(lambda _: self._core.end())

    # Transactions

    def init_transactions(self, *, keep_prepared: bool = False) -> None:
        """Take the transactional id over: once, before the first transaction.

        An open transaction is aborted, unless ``keep_prepared`` asks for it: then ``prepared`` names it, and
        only commit, abort or complete may come next.
        """
        self._client.run(lambda _: self._core.transactions.init(keep_prepared=keep_prepared))

    def begin_transaction(self) -> None:
        """Open a transaction; what is sent from now on belongs to it."""
        self._core.transactions.begin()

    def send_offsets_to_transaction(
        self, offsets: Mapping[TopicPartition, Position | int], group: GroupMetadata
    ) -> None:
        """Commit a group's offsets with the transaction; take both from its consumer right after ``poll``."""
        positions = as_positions(offsets)
        self._client.run(lambda _: self._core.transactions.send_offsets(positions, group))

    def prepare_transaction(self) -> Prepared:
        """Wait until every record is delivered; then the transaction waits for a decision, however long.

        Keep what is returned beside the decision: whoever resumes the transactional id finds it in
        ``prepared``.
        """
        return self._client.run(lambda _: self._core.transactions.prepare())

    def complete_transaction(self, decided: Prepared) -> bool:
        """Commit the prepared transaction if it is this one, else abort it; whether it committed."""
        return self._client.run(lambda _: self._core.transactions.complete(decided))

    @property
    def prepared(self) -> Prepared | None:
        """The transaction that waits for a decision."""
        return self._core.transactions.prepared

    def commit_transaction(self) -> None:
        """Wait until every record is delivered, then commit."""
        self._client.run(lambda _: self._core.transactions.commit())
        self._buffered_at_last_turn = self._core.buffered_bytes

    def abort_transaction(self) -> None:
        """Drop what is not sent, then abort."""
        self._client.run(lambda _: self._core.transactions.abort())
        self._buffered_at_last_turn = self._core.buffered_bytes

    @contextmanager
    def transaction(self) -> Iterator[Self]:
        """A transaction that is committed at the end, and aborted if something is raised."""
        self.begin_transaction()
        try:
            yield self
            self.commit_transaction()
        except BaseException as error:
            if self._core.transactions.must_abort:
                try:
                    self.abort_transaction()
                except ClientError as refused:
                    error.add_note(f"the transaction could not be aborted: {refused}")
            raise

    def _send_when_there_is_room(self, topic: str, record: Record, partition: int | None) -> Delivery:
        core = self._core
        limit = core.config.buffer_memory // 2
        if not self._client.run_until(lambda: core.buffered_bytes <= limit, core.config.max_block_ms):
            raise TimedOut("room in the buffer", core.config.max_block_ms, None)
        self._buffered_at_last_turn = core.buffered_bytes
        return core.send(topic, record, partition)
