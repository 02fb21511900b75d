"""A group's consumer for asyncio programs. The member lives as long as the event loop turns."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ottla.client.engine.tasks import Operation, wait_for
from ottla.client.group.changes import ShareChanges
from ottla.client.group.core import GroupConsumerCore
from ottla.model.ids import TopicPartition
from ottla.records.record import Record

if TYPE_CHECKING:
    from ottla.client.aio import Client

LOOK_AGAIN_MS = 100
"""How soon an error of the membership is seen by one who waits for records."""


class GroupConsumer:
    """Reads its share of a group's topics."""

    def __init__(self, client: "Client", core: GroupConsumerCore) -> None:
        self._client = client
        self._core = core
        client.tick()

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """What this member reads now."""
        return self._core.membership.owned

    def changes(self) -> ShareChanges:
        """What became of the share since the last call: ask after each ``poll``, before its records."""
        return self._core.history.take()

    @property
    def member_id(self) -> str:
        return self._core.membership.member_id

    @property
    def generation(self) -> int:
        return self._core.membership.generation

    async def poll(
        self, timeout_ms: int, max_records: int | None = None
    ) -> dict[TopicPartition, list[Record]]:
        """The next records, waiting for them at most so long; what was polled before counts as done."""
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
        """Commit these offsets, or all that was polled so far."""
        await self._client.run(lambda _: self._core.commit(offsets))

    async def close(self) -> None:
        """Leave the group."""
        await self._client.run(lambda _: self._core.close())
