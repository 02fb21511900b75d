"""A cluster in memory for the client's core: brokers that answer, refuse, hang up or fall silent on command.

Its clock stands until it is moved. Logs check producers' sequences as Kafka does, so that a client which
doubles, drops or reorders records is found out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from ottla.client.config import ClientConfig
from ottla.client.engine.engine import Engine
from ottla.client.engine.outputs import CloseLink, OpenLink, SendOnLink
from ottla.client.engine.tasks import Operation, Task
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.records.batch import batches, read_header, stamp
from ottla.records.record import Record, read_records
from ottla.wire.apis import message_classes
from ottla.wire.apis.api_versions import ApiVersion, ApiVersionsResponse
from ottla.wire.apis.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from ottla.wire.apis.init_producer_id import InitProducerIdResponse
from ottla.wire.apis.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from ottla.wire.apis.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ottla.wire.apis.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from ottla.wire.codec import decode
from ottla.wire.headers import decode_request_header, frame_response
from ottla.wire.keys import ApiKey
from ottla.wire.versions import API_VERSIONS

HANG_UP = "hang up"
SILENCE = "silence"
"""Both stand for a response."""


@dataclass
class FakeLog:
    """One partition."""

    leader: int
    leader_epoch: int = 0
    data: list[bytearray] = field(default_factory=list)
    end_offset: int = 0
    start_offset: int = 0
    producers: dict[int, list[tuple[int, int, int]]] = field(default_factory=dict)
    """Of each producer, the last batches: first sequence, the one after its last, first offset."""
    epochs: dict[int, int] = field(default_factory=dict)
    replicas: tuple[int, ...] = (1, 2)

    def append(self, records: bytes | memoryview) -> tuple[int, int]:
        """Error code and base offset."""
        batch = bytearray(records)
        header = read_header(batch)
        first, last = header.base_sequence, header.base_sequence + header.record_count
        if header.producer_id >= 0:
            if header.producer_epoch < self.epochs.get(header.producer_id, 0):
                return ErrorCode.INVALID_PRODUCER_EPOCH, -1
            is_known_epoch = header.producer_epoch == self.epochs.get(header.producer_id, 0)
            known = self.producers.get(header.producer_id, []) if is_known_epoch else []
            for before, after, offset in known:
                if (before, after) == (first, last):
                    return ErrorCode.NONE, offset
            if first != (known[-1][1] if known else 0):
                return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
            self.epochs[header.producer_id] = header.producer_epoch
            self.producers[header.producer_id] = [*known, (first, last, self.end_offset)][-5:]
        stamp(batch, 0, self.end_offset, self.leader_epoch)
        self.data.append(batch)
        self.end_offset += header.record_count
        return ErrorCode.NONE, self.end_offset - header.record_count

    def records(self) -> list[Record]:
        return [record for batch in self.data for h in batches(batch) for record in read_records(batch, h)]


class FakeCluster:
    """Brokers 1 to ``brokers`` at ports 9001 and up, and one client's engine."""

    def __init__(self, brokers: int = 2, seed: int = 7, **settings: Any) -> None:
        self.brokers = {n: ("broker", 9000 + n) for n in range(1, brokers + 1)}
        self.racks: dict[int, str] = {}
        self.down: set[int] = set()
        self.logs: dict[TopicPartition, FakeLog] = {}
        self.topic_ids: dict[str, bytes] = {}
        self.controller = 1
        self.versions = {key: (v.first, v.last) for key, v in API_VERSIONS.items()}
        self.scripted: dict[int, deque[Any]] = {}
        """By API: what the next requests get instead of the true answer (a response or a function)."""
        self.asked: list[tuple[int, int, Any]] = []
        """Every request: broker, version, message."""
        self.now_ms = 1_000
        self.next_producer_id = 100
        config = ClientConfig(bootstrap_servers=(("broker", 9001), ("broker", 9002)), **settings)
        self.engine = Engine(config, self.now_ms, Random(seed))
        self._open: dict[int, int] = {}
        self._held: list[tuple[int, bytes]] = []
        self.is_holding = False
        """Responses wait until ``release`` while this is set."""

    # Setting the scene

    def topic(self, name: str, leaders: list[int]) -> None:
        self.topic_ids[name] = len(self.topic_ids).to_bytes(15, "big") + b"\x07"
        for number, leader in enumerate(leaders):
            self.logs[TopicPartition(name, number)] = FakeLog(leader)

    def move_leader(self, partition: TopicPartition, leader: int) -> None:
        self.logs[partition].leader = leader
        self.logs[partition].leader_epoch += 1

    def script(self, api_key: ApiKey, *answers: Any) -> None:
        """The next requests of an API get these."""
        self.scripted.setdefault(api_key, deque()).extend(answers)

    def kill(self, broker: int) -> None:
        self.down.add(broker)
        for link, port in list(self._open.items()):
            if port == 9000 + broker:
                del self._open[link]
                self.engine.link_lost(link, "killed")

    # Running

    def settle(self) -> None:
        """Exchange all that can be exchanged at this moment."""
        self.engine.tick(self.now_ms)
        while outputs := self.engine.take_outputs():
            for output in outputs:
                match output:
                    case OpenLink():
                        self._connect(output)
                    case SendOnLink():
                        self._receive(output.link, b"".join(output.parts))
                    case CloseLink():
                        self._open.pop(output.link, None)

    def pass_time(self, ms: int, step_ms: int = 10) -> None:
        for _ in range(0, ms, step_ms):
            self.now_ms += step_ms
            self.settle()

    def run(self, operation: Operation[Any], ms_max: int = 200_000) -> Any:
        """An operation's result, however long it takes by the fake clock."""
        task = self.engine.spawn(operation)
        self.run_until(lambda: task.is_done, ms_max)
        return task.result()

    def run_until(self, is_done: Callable[[], bool], ms_max: int = 200_000) -> None:
        self.settle()
        limit_ms = self.now_ms + ms_max
        while not is_done():
            due_ms = self.engine.next_tick_ms()
            assert due_ms is not None, "nothing will ever happen again"
            assert due_ms <= limit_ms, "it takes too long"
            self.now_ms = max(self.now_ms + 1, due_ms)
            self.settle()

    def release(self, order: Callable[[list[Any]], list[Any]] = list) -> None:
        """Deliver the responses that were held back."""
        self.is_holding = False
        held, self._held = self._held, []
        for link, frame in order(held):
            if link in self._open:
                self.engine.frame_came(link, memoryview(frame))
        self.settle()

    def requests(self, api_key: ApiKey) -> list[tuple[int, int, Any]]:
        return [asked for asked in self.asked if asked[2].spec.api_key == api_key]

    def spawn(self, operation: Operation[Any]) -> Task[Any]:
        return self.engine.spawn(operation)

    # Inside

    def _connect(self, output: OpenLink) -> None:
        if output.port - 9000 in self.down or (output.host, output.port) not in self.brokers.values():
            self.engine.link_lost(output.link, "connection refused")
        else:
            self._open[output.link] = output.port
            self.engine.link_connected(output.link)

    def _receive(self, link: int, stream: bytes) -> None:
        while stream and link in self._open:
            size = int.from_bytes(stream[:4], "big")
            frame, stream = stream[4 : 4 + size], stream[4 + size :]
            self._answer(link, self._open[link] - 9000, frame)

    def _answer(self, link: int, broker: int, frame: bytes) -> None:
        header, body = decode_request_header(frame)
        request_class, _ = message_classes(ApiKey(header.api_key))
        first, last = self.versions[header.api_key]
        version = header.api_version
        if header.api_key == ApiKey.API_VERSIONS and not first <= version <= last:
            rows = [ApiVersion(api_key=ApiKey.API_VERSIONS, min_version=first, max_version=last)]
            response: Any = ApiVersionsResponse(error_code=35, api_keys=rows)
            version = 0
        else:
            message = decode(request_class, version, frame, body)
            self.asked.append((broker, version, message))
            response = self._response(broker, header.api_key, message)
        if response is HANG_UP:
            del self._open[link]
            self.engine.link_lost(link, "the broker closed the connection")
        elif response is not None and response is not SILENCE:
            self._reply(link, b"".join(frame_response(response, version, header.correlation_id))[4:])

    def _reply(self, link: int, frame: bytes) -> None:
        if self.is_holding:
            self._held.append((link, frame))
        else:
            self.engine.frame_came(link, memoryview(frame))

    def _response(self, broker: int, api_key: int, message: Any) -> Any:
        scripted = self.scripted.get(api_key)
        if scripted:
            answer = scripted.popleft()
            return answer(message) if callable(answer) else answer
        handlers: dict[int, Callable[[int, Any], Any]] = {
            ApiKey.API_VERSIONS: self._api_versions,
            ApiKey.METADATA: self._metadata,
            ApiKey.INIT_PRODUCER_ID: self._init_producer_id,
            ApiKey.PRODUCE: self.produce,
            ApiKey.FETCH: self._fetch,
            ApiKey.LIST_OFFSETS: self._list_offsets,
        }
        return handlers[api_key](broker, message)

    def _api_versions(self, broker: int, message: Any) -> ApiVersionsResponse:
        rows = [
            ApiVersion(api_key=key, min_version=first, max_version=last)
            for key, (first, last) in self.versions.items()
        ]
        return ApiVersionsResponse(api_keys=rows)

    def _metadata(self, broker: int, message: MetadataRequest) -> MetadataResponse:
        names = [topic.name for topic in message.topics or []] if message.topics is not None else None
        return MetadataResponse(
            brokers=[
                MetadataResponseBroker(node_id=n, host=host, port=port, rack=self.racks.get(n))
                for n, (host, port) in self.brokers.items()
                if n not in self.down
            ],
            cluster_id="fake",
            controller_id=self.controller,
            topics=[self._topic_row(name) for name in (self.topic_ids if names is None else names) if name],
        )

    def _topic_row(self, name: str) -> MetadataResponseTopic:
        if name not in self.topic_ids:
            return MetadataResponseTopic(name=name, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        partitions = [
            MetadataResponsePartition(
                error_code=ErrorCode.NONE if log.leader >= 0 else ErrorCode.LEADER_NOT_AVAILABLE,
                partition_index=partition.partition,
                leader_id=log.leader,
                leader_epoch=log.leader_epoch,
                replica_nodes=log.replicas,
                isr_nodes=log.replicas,
            )
            for partition, log in self.logs.items()
            if partition.topic == name
        ]
        return MetadataResponseTopic(name=name, topic_id=self.topic_ids[name], partitions=partitions)

    def _init_producer_id(self, broker: int, message: Any) -> InitProducerIdResponse:
        self.next_producer_id += 1
        return InitProducerIdResponse(producer_id=self.next_producer_id, producer_epoch=0)

    def produce(self, broker: int, message: ProduceRequest) -> ProduceResponse | None:
        response = ProduceResponse()
        for topic in message.topic_data:
            row = TopicProduceResponse(name=topic.name)
            for data in topic.partition_data:
                log = self.logs.get(TopicPartition(topic.name, data.index))
                assert data.records is not None
                if log is None or log.leader != broker:
                    code, offset = ErrorCode.NOT_LEADER_OR_FOLLOWER, -1
                else:
                    code, offset = log.append(bytes(data.records))
                row.partition_responses.append(
                    PartitionProduceResponse(index=data.index, error_code=code, base_offset=offset)
                )
            response.responses.append(row)
        return response if message.acks else None

    def _fetch(self, broker: int, message: FetchRequest) -> Any:
        names = {topic_id: name for name, topic_id in self.topic_ids.items()}
        response = FetchResponse()
        has_data = False
        for topic in message.topics:
            name = topic.topic or names.get(topic.topic_id, "")
            row = FetchableTopicResponse(topic=topic.topic, topic_id=topic.topic_id)
            for wanted in topic.partitions:
                log = self.logs.get(TopicPartition(name, wanted.partition))
                data = PartitionData(partition_index=wanted.partition)
                if log is None or log.leader != broker:
                    data.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
                elif not log.start_offset <= wanted.fetch_offset <= log.end_offset:
                    data.error_code = ErrorCode.OFFSET_OUT_OF_RANGE
                else:
                    data.high_watermark = data.last_stable_offset = log.end_offset
                    chosen = [b for b in log.data if read_header(b).last_offset >= wanted.fetch_offset]
                    data.records = b"".join(chosen)
                has_data |= bool(data.records) or bool(data.error_code)
                row.partitions.append(data)
            response.responses.append(row)
        return response if has_data else SILENCE

    def _list_offsets(self, broker: int, message: ListOffsetsRequest) -> ListOffsetsResponse:
        response = ListOffsetsResponse()
        for topic in message.topics:
            row = ListOffsetsTopicResponse(name=topic.name)
            for wanted in topic.partitions:
                log = self.logs[TopicPartition(topic.name, wanted.partition_index)]
                answer = ListOffsetsPartitionResponse(partition_index=wanted.partition_index)
                if log.leader != broker:
                    answer.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
                else:
                    answer.offset = log.start_offset if wanted.timestamp == -2 else log.end_offset
                row.partitions.append(answer)
            response.topics.append(row)
        return response
