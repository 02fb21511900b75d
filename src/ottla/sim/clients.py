"""Clients in the simulated world: idempotent producers and consumers that never stop asking."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.records.batch import batches
from ottla.records.builder import build_batch
from ottla.records.record import Record, read_records
from ottla.sim.history import History, Sent
from ottla.sim.network import Network
from ottla.sim.rpc import Rpc
from ottla.sim.world import MILLISECOND, World
from ottla.wire.apis.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from ottla.wire.apis.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.wire.apis.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ottla.wire.apis.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

METADATA_VERSION = 9
PRODUCE_VERSION = 9
FETCH_VERSION = 12
INIT_VERSION = 4
BACKOFF_US = 100 * MILLISECOND

REFUSED_BEFORE_WRITING = frozenset(
    {
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)


@dataclass(frozen=True, slots=True)
class Leader:
    """Where a partition is led, by some broker's word."""

    broker: int
    epoch: int


class Client:
    """What all clients need: connections to brokers and an idea of who leads what."""

    def __init__(
        self, world: World, network: Network, name: str, addresses: dict[int, tuple[str, int]]
    ) -> None:
        self.world = world
        self.network = network
        self.host = name
        self.addresses = addresses
        self.leaders: dict[TopicPartition, Leader] = {}
        self.controller = -1
        self.is_stopped = False
        self._rpcs: dict[int, Rpc] = {}

    def rpc(self, broker: int) -> Rpc:
        if broker not in self._rpcs:
            self._rpcs[broker] = Rpc(self.world, self.network, self.host, self.addresses[broker])
        return self._rpcs[broker]

    def refresh(self, topics: list[str], then: Callable[[], None]) -> None:
        """Ask some broker who leads; older words than those known are not believed."""
        broker = self.world.chance.choice(sorted(self.addresses))
        asked = [MetadataRequestTopic(name=topic) for topic in topics]
        request = MetadataRequest(topics=asked, allow_auto_topic_creation=False)

        def heard(response: MetadataResponse | None) -> None:
            if response is not None:
                self._learn(response)
            then()

        self.rpc(broker).ask(request, METADATA_VERSION, MetadataResponse, heard)

    def _learn(self, response: MetadataResponse) -> None:
        self.controller = response.controller_id
        for topic in response.topics:
            for row in topic.partitions:
                partition = TopicPartition(topic.name or "", row.partition_index)
                known = self.leaders.get(partition)
                if row.leader_id >= 0 and (known is None or row.leader_epoch >= known.epoch):
                    self.leaders[partition] = Leader(row.leader_id, row.leader_epoch)

    def later(self, run: Callable[[], None], delay_us: int = BACKOFF_US) -> None:
        self.world.after(delay_us + self.world.between(0, delay_us), run)


class Producer(Client):
    """Sends numbered values to one partition, idempotent, acks=all, and never gives one up."""

    def __init__(
        self,
        world: World,
        network: Network,
        name: str,
        addresses: dict[int, tuple[str, int]],
        partition: TopicPartition,
        history: History,
        pace_us: int,
    ) -> None:
        super().__init__(world, network, name, addresses)
        self.partition = partition
        self.history = history
        self.pace_us = pace_us
        self.is_idle = True
        self._producer_id = -1
        self._epoch = 0
        self._sequence = 0
        self._order = 0

    def start(self) -> None:
        if self._producer_id < 0:
            self._init()
        else:
            self._next_batch()

    def _init(self) -> None:
        broker = self.world.chance.choice(sorted(self.addresses))

        def heard(response: InitProducerIdResponse | None) -> None:
            if response is None or response.error_code != ErrorCode.NONE:
                self.later(self._init)
                return
            self._producer_id, self._epoch = response.producer_id, response.producer_epoch
            self._next_batch()

        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
        self.rpc(broker).ask(request, INIT_VERSION, InitProducerIdResponse, heard)

    def _next_batch(self) -> None:
        self.is_idle = True
        if self.is_stopped:
            return
        self.is_idle = False
        batch = []
        for _ in range(self.world.between(1, 5)):
            self._order += 1
            value = f"{self.host}/{self._order}".encode()
            sent = Sent(value, self.host, self._order, self.partition)
            self.history.will_send(sent)
            batch.append(sent)
        self._send(batch)

    def _send(self, batch: list[Sent]) -> None:
        """The same batch with the same sequence until it is acknowledged: that makes it idempotent."""
        leader = self.leaders.get(self.partition)
        if leader is None:
            self.refresh([self.partition.topic], lambda: self.later(lambda: self._send(batch)))
            return
        records = build_batch(
            [Record(None, sent.value, timestamp=self.world.now_ms) for sent in batch],
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            base_sequence=self._sequence,
        )
        data = [PartitionProduceData(index=self.partition.partition, records=records)]
        request = ProduceRequest(
            acks=-1,
            timeout_ms=3_000,
            topic_data=[TopicProduceData(name=self.partition.topic, partition_data=data)],
        )

        def heard(response: ProduceResponse | None) -> None:
            self._heard(batch, response)

        self.rpc(leader.broker).ask(request, PRODUCE_VERSION, ProduceResponse, heard)

    def _heard(self, batch: list[Sent], response: ProduceResponse | None) -> None:
        row = response.responses[0].partition_responses[0] if response is not None else None
        if row is not None and row.error_code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
            for index, sent in enumerate(batch):
                self.history.acked(sent, row.base_offset + index)
            self._sequence += len(batch)
            self.later(self._next_batch, self.pace_us)
            return
        self.leaders.pop(self.partition, None)
        self.later(lambda: self._send(batch))


class Consumer(Client):
    """Reads one partition from its start, and checks every record it is given."""

    def __init__(
        self,
        world: World,
        network: Network,
        name: str,
        addresses: dict[int, tuple[str, int]],
        partition: TopicPartition,
        history: History,
    ) -> None:
        super().__init__(world, network, name, addresses)
        self.partition = partition
        self.history = history
        self.position = 0
        self.log: list[tuple[int, bytes]] = []

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
            max_wait_ms=300,
            min_bytes=1,
            topics=[FetchTopic(topic=self.partition.topic, partitions=[wanted])],
        )
        self.rpc(leader.broker).ask(request, FETCH_VERSION, FetchResponse, self._heard)

    def _heard(self, response: FetchResponse | None) -> None:
        row: Any = None
        if response is not None and response.responses:
            row = response.responses[0].partitions[0]
        if row is None or row.error_code != ErrorCode.NONE:
            self.leaders.pop(self.partition, None)
            self.later(self.start)
            return
        if row.records:
            self._take(memoryview(bytes(row.records)))
        self.later(self.start, MILLISECOND)

    def _take(self, view: memoryview) -> None:
        for header in batches(view):
            if header.last_offset < self.position or header.is_control:
                continue
            for record in read_records(view, header):
                if record.offset >= self.position:
                    value = record.value or b""
                    self.history.was_read(self.partition, record.offset, value, self.host)
                    self.log.append((record.offset, value))
            self.position = header.last_offset + 1
