"""A consumer that reads its share of a group's topics: membership and fetcher together. Sans-IO."""

from collections.abc import Iterable, Mapping

from ottla.client.admin.groups import offset_rows, offsets_request
from ottla.client.config import ConsumerConfig
from ottla.client.engine.engine import Engine
from ottla.client.engine.tasks import BrokerLane, Operation, ask, sleep
from ottla.client.errors import BrokerError, ClientClosed, ClientError, OffsetOutOfRange
from ottla.client.fetching.decoding import Position
from ottla.client.fetching.fetcher import FetchCore
from ottla.client.group.changes import ShareHistory
from ottla.client.group.config import MembershipConfig
from ottla.client.group.membership import Membership
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.model.timestamps import EARLIEST, LATEST
from ottla.records.record import Record
from ottla.wire.apis.offset_fetch import OffsetFetchResponse, OffsetFetchResponsePartitions

RETRY_MS = 200


class GroupConsumerCore:
    """Records of the partitions that this member owns now.

    With ``enable.auto.commit`` the offsets of records returned before the last ``take`` are committed
    periodically and when partitions are given up: a ``take`` means that earlier records are processed.
    """

    def __init__(
        self,
        engine: Engine,
        group: str,
        topics: Iterable[str],
        config: ConsumerConfig,
        membership: MembershipConfig,
    ) -> None:
        self.fetching = FetchCore(engine, config)
        self._engine = engine
        self._processed: dict[TopicPartition, Position] = {}
        self._committed: dict[TopicPartition, int] = {}
        self.history = ShareHistory()
        self.membership = Membership(engine, group, topics, membership, self, config.client_rack)
        if membership.enable_auto_commit:
            engine.spawn(self._commit_now_and_then(membership.auto_commit_interval_ms))

    # -- what users do -------------------------------------------------------------------------

    @property
    def has_news(self) -> bool:
        """Whether ``take`` would return records or raise an error."""
        return self.membership.error is not None or self.fetching.has_data

    def looks_for_news(self) -> bool:
        """``has_news``, called by ``poll``: it shows that the program is alive."""
        self.membership.polled()
        return self.has_news

    def take(self, count_max: int) -> dict[TopicPartition, list[Record]]:
        """The next records of this member's share; a fatal error of the membership is raised instead."""
        self.membership.polled()
        if self.membership.error is not None:
            raise self.membership.error
        self._processed = self.fetching.positions()
        return self.fetching.take(count_max)

    def commit(self, offsets: Mapping[TopicPartition, int] | None = None) -> Operation[None]:
        """Commit these offsets, or those of all records returned so far."""
        if offsets is None:
            yield from self._commit(self.fetching.positions())
        else:
            yield from self._commit({tp: Position(offset) for tp, offset in offsets.items()})

    def _commit(self, given: Mapping[TopicPartition, Position]) -> Operation[None]:
        new = {tp: at for tp, at in given.items() if self._committed.get(tp) != at.offset}
        if new:
            yield from self.membership.commit(new)
            self._committed.update({tp: at.offset for tp, at in new.items()})

    def close(self) -> Operation[None]:
        """Commit if auto-commit is on, leave the group, stop reading."""
        self._processed = self.fetching.positions()
        yield from self.membership.leave()
        self.fetching.assign({})

    # -- what the membership asks for ----------------------------------------------------------

    def give_up(self, partitions: frozenset[TopicPartition], *, is_lost: bool) -> Operation[None]:
        processed = {tp: at for tp, at in self._processed.items() if tp in partitions}
        self.fetching.drop(partitions)
        self.history.gave_up(partitions, is_lost=is_lost)
        if not is_lost and self.membership.config.enable_auto_commit and processed:
            try:
                yield from self._commit(processed)
            except ClientError as error:
                if isinstance(error, ClientClosed):
                    raise
        for tp in partitions:
            self._committed.pop(tp, None)
            self._processed.pop(tp, None)

    def take_over(self, partitions: frozenset[TopicPartition], coordinator: BrokerLane) -> Operation[None]:
        rows = yield from self._stable_offsets(partitions, coordinator)
        starts: dict[TopicPartition, Position] = {}
        for tp in sorted(partitions):
            row = rows.get(tp)
            if row is not None and row.committed_offset >= 0:
                self._committed[tp] = row.committed_offset
                starts[tp] = Position(row.committed_offset, row.committed_leader_epoch)
            else:
                starts[tp] = Position(self._reset(tp))
        self.fetching.add(starts)
        self.history.took_over(partitions)

    def _stable_offsets(
        self, partitions: frozenset[TopicPartition], coordinator: BrokerLane
    ) -> Operation[dict[TopicPartition, OffsetFetchResponsePartitions]]:
        """The committed offsets, once no transaction can change them; at most half a session's time."""
        deadline_ms = self._engine.now_ms + self.membership.config.session_timeout_ms // 2
        request = offsets_request(self.membership.group, sorted(partitions), require_stable=True)
        while True:
            rows = offset_rows((yield from ask(coordinator, request, OffsetFetchResponse)))
            error = next((row.error_code for row in rows.values() if row.error_code), ErrorCode.NONE)
            if not error:
                return rows
            if error != ErrorCode.UNSTABLE_OFFSET_COMMIT or self._engine.now_ms >= deadline_ms:
                raise BrokerError(error)
            yield from sleep(RETRY_MS)

    def _reset(self, tp: TopicPartition) -> int:
        match self.fetching.config.auto_offset_reset:
            case "earliest":
                return EARLIEST
            case "latest":
                return LATEST
            case "none":
                raise OffsetOutOfRange(tp, -1)

    def _commit_now_and_then(self, interval_ms: int) -> Operation[None]:
        while not self.membership.has_left and self.membership.error is None:
            yield from sleep(interval_ms)
            ours = {tp: at for tp, at in self._processed.items() if tp in self.membership.owned}
            try:
                yield from self._commit(ours)
            except ClientError as error:
                if isinstance(error, ClientClosed):
                    return
                yield from sleep(RETRY_MS)
