"""A group's consumer for asyncio programs. Its heartbeats are sent while the event loop runs."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ottla.client.engine.tasks import Operation, wait_for
from ottla.client.group.core import GroupConsumerCore
from ottla.client.group.member_view import MemberView
from ottla.model.ids import TopicPartition
from ottla.records.record import Record

if TYPE_CHECKING:
    from ottla.client.aio.client import Client

LOOK_AGAIN_MS = 100
"""How soon ``poll`` notices an error of the membership while it waits for records."""


class GroupConsumer(MemberView):
    """Reads its share of a group's topics."""

    def __init__(self, client: "Client", core: GroupConsumerCore) -> None:
        super().__init__(core)
        self._client = client
        client.tick()

    async def poll(
        self, timeout_ms: int, max_records: int | None = None
    ) -> dict[TopicPartition, list[Record]]:
        """The next records, waiting at most ``timeout_ms``; records polled before count as processed."""
        core = self._core
        count = core.fetching.config.max_poll_records if max_records is None else max_records
        if not (records := core.take(count)):
            await self._client.run(lambda engine: self._news(engine.now_ms + timeout_ms))
            records = core.take(count)
        self._client.tick()
        return records

    def _news(self, deadline_ms: int) -> Operation[None]:
        core = self._core
        while not core.looks_for_news() and (left_ms := deadline_ms - self._client.engine.now_ms) > 0:
            yield from wait_for(core.fetching.data_came, min(left_ms, LOOK_AGAIN_MS))

    async def commit(self, offsets: Mapping[TopicPartition, int] | None = None) -> None:
        """Commit these offsets, or those of all records polled so far."""
        await self._client.run(lambda _: self._core.commit(offsets))

    async def close(self) -> None:
        """Leave the group."""
        await self._client.run(lambda _: self._core.close())
