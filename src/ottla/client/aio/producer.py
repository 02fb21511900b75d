"""A producer for asyncio programs: I/O happens in the event loop."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Self

from ottla.client.config import ProducerConfig
from ottla.client.engine.tasks import wait_for
from ottla.client.errors import BufferFull, ClientError, TimedOut, TransactionAborted
from ottla.client.fetching.decoding import Position
from ottla.client.group.metadata import GroupMetadata
from ottla.client.producing.batches import Delivery
from ottla.client.producing.prepared import Prepared
from ottla.client.producing.producer import ProducerCore
from ottla.client.producing.transaction_requests import as_positions
from ottla.model.ids import TopicPartition
from ottla.records.record import Record, RecordHeaders

if TYPE_CHECKING:
    from ottla.client.aio.client import Client


class Producer:
    """Sends records; I/O happens in the event loop."""

    def __init__(self, client: "Client", config: ProducerConfig) -> None:
        self._client = client
        self._core = ProducerCore(client.engine, config)

    async def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: RecordHeaders = (),
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> "asyncio.Future[Delivery]":
        """Take a record, waiting only if the buffer is full; the future gets its delivery or its error."""
        if timestamp_ms is None:
            timestamp_ms = time.time_ns() // 1_000_000
        record = Record(key, value, headers, timestamp_ms)
        self._client.engine.catch_up(self._client.now_ms())
        limit_ms = self._core.config.max_block_ms
        while True:
            try:
                delivery = self._core.send(topic, record, partition)
                break
            except BufferFull as full:
                if not await self._client.run(lambda _: wait_for(self._core.progress, limit_ms)):
                    raise TimedOut("room in the buffer", limit_ms, full) from full
        future: asyncio.Future[Delivery] = asyncio.get_running_loop().create_future()
        delivery.when_done(lambda done: _resolve(future, done))
        self._client.tick_soon()
        return future

    async def send_and_wait(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: RecordHeaders = (),
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> Delivery:
        """Send a record and wait until it is delivered; raise if it is not."""
        future = await self.send(
            topic, value, key=key, headers=headers, partition=partition, timestamp_ms=timestamp_ms
        )
        return await future

    async def flush(self) -> None:
        """Wait until every record sent so far is delivered or has failed."""
        await self._client.run(lambda _: self._core.flush())

    async def close(self) -> None:
        """Flush, or abort the transaction that is open."""
        await self._client.run(lambda _: self._core.end())

    # Transactions

    async def init_transactions(self, *, keep_prepared: bool = False) -> None:
        """Take the transactional id over: once, before the first transaction.

        An open transaction is aborted, unless ``keep_prepared`` asks for it: then ``prepared`` names it, and
        only commit, abort or complete may come next.
        """
        await self._client.run(lambda _: self._core.transactions.init(keep_prepared=keep_prepared))

    def begin_transaction(self) -> None:
        """Open a transaction; what is sent from now on belongs to it."""
        self._core.transactions.begin()

    async def send_offsets_to_transaction(
        self, offsets: Mapping[TopicPartition, Position | int], group: GroupMetadata
    ) -> None:
        """Commit a group's offsets with the transaction; take both from its consumer right after ``poll``."""
        positions = as_positions(offsets)
        await self._client.run(lambda _: self._core.transactions.send_offsets(positions, group))

    async def prepare_transaction(self) -> Prepared:
        """Wait until every record is delivered; then the transaction waits for a decision, however long.

        Keep what is returned beside the decision: whoever resumes the transactional id finds it in
        ``prepared``.
        """
        return await self._client.run(lambda _: self._core.transactions.prepare())

    async def complete_transaction(self, decided: Prepared) -> bool:
        """Commit the prepared transaction if it is this one, else abort it; whether it committed."""
        return await self._client.run(lambda _: self._core.transactions.complete(decided))

    @property
    def prepared(self) -> Prepared | None:
        """The transaction that waits for a decision."""
        return self._core.transactions.prepared

    async def commit_transaction(self) -> None:
        """Wait until every record is delivered, then commit."""
        await self._client.run(lambda _: self._core.transactions.commit())

    async def abort_transaction(self) -> None:
        """Drop what is not sent, then abort."""
        await self._client.run(lambda _: self._core.transactions.abort())

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Self]:
        """A transaction that is committed at the end, and aborted if something is raised."""
        self.begin_transaction()
        try:
            yield self
            await self.commit_transaction()
        except BaseException as error:
            if self._core.transactions.must_abort:
                try:
                    await self.abort_transaction()
                except ClientError as refused:
                    error.add_note(f"the transaction could not be aborted: {refused}")
            raise


def _resolve(future: "asyncio.Future[Delivery]", delivery: Delivery) -> None:
    if not future.done():
        if delivery.error is not None:
            future.set_exception(delivery.error)
            if isinstance(delivery.error, TransactionAborted):
                future.exception()  # Expected: asyncio need not warn of a future that nobody awaits.
        else:
            future.set_result(delivery)
