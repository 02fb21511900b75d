"""A consumer of the simulated world: reads one partition from its start and checks all it is given."""

from collections.abc import Callable

from ottla.model.errors import ErrorCode
from ottla.model.ids import CONSUMER, TopicPartition
from ottla.model.timestamps import EARLIEST
from ottla.records.batch import batches
from ottla.records.record import read_records
from ottla.sim.load.clients import Client, Surroundings
from ottla.sim.plan import TopicKind
from ottla.sim.truth.history import History, Violation
from ottla.sim.world import MILLISECOND
from ottla.wire.apis.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData
from ottla.wire.apis.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

FETCH_VERSION = 12
LIST_VERSION = 7
WAIT_MS = 2_000


class Consumer(Client):
    """Never stops asking. ``is_committed`` is the world's own knowledge of what consumers may see."""

    def __init__(
        self,
        around: Surroundings,
        partition: TopicPartition,
        kind: TopicKind,
        history: History,
        is_committed: Callable[[TopicPartition, int], bool],
    ) -> None:
        super().__init__(around, f"consumer-{partition}")
        self.partition = partition
        self.kind = kind
        self.history = history
        self.position = 0
        self.log: list[tuple[int, bytes]] = []
        self._is_committed = is_committed

    def start(self) -> None:
        if self.is_stopped:
            return
        leader = self.leaders.get(self.partition)
        if leader is None:
            self.refresh([self.partition.topic], lambda: self.later(self.start))
            return
        wanted = FetchPartition(
            partition=self.partition.partition,
            current_leader_epoch=leader.epoch,
            fetch_offset=self.position,
            partition_max_bytes=1 << 20,
        )
        request = FetchRequest(
            max_wait_ms=WAIT_MS,
            min_bytes=1,
            topics=[FetchTopic(topic=self.partition.topic, partitions=[wanted])],
        )
        self.rpc(leader.broker).ask(request, FETCH_VERSION, self._heard)

    def _heard(self, response: FetchResponse | None) -> None:
        row: PartitionData | None = None
        if response is not None and response.responses:
            row = response.responses[0].partitions[0]
        if row is not None and row.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._out_of_range()
            return
        if row is None or row.error_code != ErrorCode.NONE:
            self.leaders.pop(self.partition, None)
            self.later(self.start)
            return
        if row.records:
            self._take(memoryview(bytes(row.records)))
        self.later(self.start, 5 * MILLISECOND)

    def _take(self, view: memoryview) -> None:
        first = self.position
        for header in batches(view):
            if header.last_offset < self.position:
                continue
            for record in read_records(view, header) if not header.is_control else ():
                if record.offset >= self.position:
                    value = record.value or b""
                    self.history.was_read(self.partition, record.offset, value, self.host)
                    self.log.append((record.offset, value))
            self.position = header.last_offset + 1
        if self.position > first:
            self.world.note(b"%d" % self.position)
            if not self._is_committed(self.partition, self.position - 1):
                raise Violation(f"uncommitted: {self.host} was given {self.partition}@{self.position - 1}")

    # -- records that went -------------------------------------------------------------------

    def _out_of_range(self) -> None:
        if self.partition in self.history.unclean:
            self.position = 0
            self.log.clear()
        elif self.kind is not TopicKind.RETAINED:
            raise Violation(f"gone: {self.partition}@{self.position} is out of range for {self.host}")
        leader = self.leaders.get(self.partition)
        if leader is None:
            self.later(self.start)
            return
        row = ListOffsetsPartition(
            partition_index=self.partition.partition, current_leader_epoch=leader.epoch, timestamp=EARLIEST
        )
        topics = [ListOffsetsTopic(name=self.partition.topic, partitions=[row])]
        request = ListOffsetsRequest(replica_id=CONSUMER, topics=topics)
        self.rpc(leader.broker).ask(request, LIST_VERSION, self._found_start)

    def _found_start(self, response: ListOffsetsResponse | None) -> None:
        row = response.topics[0].partitions[0] if response is not None else None
        if row is None or row.error_code != ErrorCode.NONE:
            self.leaders.pop(self.partition, None)
        else:
            self.position = max(self.position, row.offset)
        self.later(self.start)
