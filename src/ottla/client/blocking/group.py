"""A group's consumer for ordinary programs. Heartbeats are sent only inside its methods: poll often."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ottla.client.group.core import GroupConsumerCore
from ottla.client.group.member_view import MemberView
from ottla.model.ids import TopicPartition
from ottla.records.record import Record

if TYPE_CHECKING:
    from ottla.client.blocking.client import Client


class GroupConsumer(MemberView):
    """Reads its share of a group's topics."""

    def __init__(self, client: "Client", core: GroupConsumerCore) -> None:
        super().__init__(core)
        self._client = client

    def poll(self, timeout_ms: int, max_records: int | None = None) -> dict[TopicPartition, list[Record]]:
        """The next records, waiting at most ``timeout_ms``; records polled before count as processed."""
        core = self._core
        self._client.turn(0)
        count = core.fetching.config.max_poll_records if max_records is None else max_records
        if not (records := core.take(count)):
            self._client.run_until(core.looks_for_news, timeout_ms)
            records = core.take(count)
        return records

    def commit(self, offsets: Mapping[TopicPartition, int] | None = None) -> None:
        """Commit these offsets, or those of all records polled so far."""
        self._client.run(lambda _: self._core.commit(offsets))

    def close(self) -> None:
        """Leave the group."""
        self._client.run(lambda _: self._core.close())
