"""Consumes, transforms, produces: what was committed goes to the same partition of another topic."""

from collections.abc import Callable
from functools import partial

from ottla.client.admin.asking import GROUP, find_coordinator
from ottla.client.admin.groups import offset_rows, offsets_request
from ottla.client.config import ConsumerConfig
from ottla.client.engine.tasks import BrokerLane, Operation, ask, sleep
from ottla.client.errors import BrokerError, ClientError
from ottla.client.fetching.decoding import Position
from ottla.client.group.config import MembershipConfig
from ottla.client.group.core import GroupConsumerCore
from ottla.client.group.member_view import MemberView
from ottla.client.group.metadata import GroupMetadata
from ottla.model.ids import TopicPartition
from ottla.records.record import Record
from ottla.sim.load.clients import Surroundings
from ottla.sim.load.own_workload import BEAT_MS, POLL_MS_MAX, SESSION_MS
from ottla.sim.load.transactions.program import Program
from ottla.sim.truth.transactions import Attempt, TransactionTruth
from ottla.wire.apis.offset_fetch import OffsetFetchResponse

COPIERS = "copiers"
"""Their group."""
LANE = "committed"
RETRY_MS = 200


class Copier(Program):
    """A member of the copiers' group; what it has copied it commits with its copies."""

    def __init__(
        self,
        around: Surroundings,
        name: str,
        transactional_id: str,
        truth: TransactionTruth,
        ended: Callable[[Program], None],
        topics: tuple[str, str],
        strategies: tuple[str, ...],
    ) -> None:
        super().__init__(around, name, transactional_id, truth, ended)
        source, self._target = topics
        membership = MembershipConfig(
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=BEAT_MS,
            max_poll_interval_ms=POLL_MS_MAX,
            partition_assignment_strategy=strategies,
            enable_auto_commit=False,
        )
        config = ConsumerConfig(auto_offset_reset="earliest", isolation_level="read_committed")
        self._consumer = GroupConsumerCore(self.engine, COPIERS, [source], config, membership)
        self._view = MemberView(self._consumer)

    def _work(self) -> Operation[None]:
        taken = self._consumer.take(self.world.chance.choice([1, 20, 100]))
        if not taken:
            self.is_idle = self.is_stopped
            return
        positions = {each: at for each, at in self._view.positions().items() if each in taken}
        try:
            member: GroupMetadata | None = self._view.group_metadata()
        except BrokerError:
            member = None  # It is out of its group, and what it was given is another's by now.
        if member is None or not (
            yield from self._transaction(partial(self._fill, taken, positions, member))
        ):
            yield from self._go_back()

    def _fill(
        self,
        taken: dict[TopicPartition, list[Record]],
        positions: dict[TopicPartition, Position],
        member: GroupMetadata,
        attempt: Attempt,
    ) -> Operation[bool]:
        for partition, records in taken.items():
            for record in records:
                value = record.value or b""
                self.truth.was_read(partition, record.offset, value, self.host)
                self._send(attempt, TopicPartition(self._target, partition.partition), value.decode())
        if self.world.happens(0.3):
            yield from sleep(self.world.between(0, 400))
        if self.world.happens(0.04) and not self.is_stopped:
            yield from sleep(self.timeout_ms + self.world.between(0, 3_000))
        transactions = self.producer.transactions
        yield from self._until_done(lambda: transactions.send_offsets(positions, member))
        return self.is_stopped or self.world.happens(0.9)

    def _go_back(self) -> Operation[None]:
        """Read on from what was committed: what was taken since was not copied."""
        membership, fetching = self._consumer.membership, self._consumer.fetching
        while True:
            generation, owned = membership.generation, membership.owned
            try:
                committed = yield from self._committed(owned)
            except ClientError as error:
                self.world.note(str(error).encode())
                yield from sleep(RETRY_MS)
                continue
            if generation == membership.generation and owned == membership.owned:
                for each in owned.intersection(fetching.assignment):
                    fetching.seek(each, committed[each] if committed[each].offset >= 0 else 0)
                return

    def _committed(self, partitions: frozenset[TopicPartition]) -> Operation[dict[TopicPartition, Position]]:
        if not partitions:
            return {}
        found = yield from find_coordinator(COPIERS, GROUP)
        request = offsets_request(COPIERS, sorted(partitions), require_stable=True)
        rows = offset_rows((yield from ask(BrokerLane(found.node_id, LANE), request, OffsetFetchResponse)))
        for row in rows.values():
            if row.error_code:
                raise BrokerError(row.error_code)
        return {
            each: Position(row.committed_offset, row.committed_leader_epoch) for each, row in rows.items()
        }
