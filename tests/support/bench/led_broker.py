"""A node on the bench under a scripted controller: roles, records and fetches by hand."""

from typing import Any

from ottla.config.areas import BrokerConfig
from ottla.records.batch import BatchHeader, batches
from ottla.records.builder import build_batch
from ottla.records.compression import Codec
from ottla.records.record import Record
from ottla.wire.apis import message_classes
from ottla.wire.apis.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
    ReplicaState,
)
from ottla.wire.apis.leader_and_isr import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicState,
)
from ottla.wire.apis.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from ottla.wire.apis.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from ottla.wire.headers import decode_response, frame_response
from ottla.wire.keys import ApiKey
from support.bench.node_bench import Bench

ME, SECOND, THIRD = 1, 2, 3
TOPIC = "orders"
TOPIC_ID = bytes(range(16))
CONTROLLER_EPOCH = 7


class NoCandidate:
    """In place of the node's own candidate for controller: every hook, and nothing behind it."""

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments: None


def a_batch(*values: str, **settings: Any) -> bytearray:
    """One batch of records with these values."""
    records = [Record(None, value.encode(), timestamp=1_700_000_000_000) for value in values]
    return build_batch(records, codec=settings.pop("codec", Codec.NONE), **settings)


class LedBroker(Bench):
    """Broker 1 of three; the test speaks for the controller (broker 2) and for the other brokers."""

    def __init__(
        self, config: BrokerConfig | None = None, brokers: tuple[int, ...] = (ME, SECOND, THIRD)
    ) -> None:
        super().__init__(config)
        self.brokers = brokers
        self.controller = SECOND
        self.epoch = 0
        self.topic, self.topic_id = TOPIC, TOPIC_ID
        self.racks: dict[int, str] = {}
        self.node.controller = NoCandidate()
        self.start()
        self.tell_metadata()

    # ---- the controller

    def tell_metadata(self, replicas: tuple[int, ...] | None = None, **partitions: int) -> None:
        """UpdateMetadata: the live brokers, and ``p0=<leader>`` for partitions of the topic."""
        states = [
            UpdateMetadataPartitionState(
                partition_index=int(name[1:]),
                leader=leader,
                leader_epoch=self.epoch,
                isr=replicas or self.brokers,
                replicas=replicas or self.brokers,
            )
            for name, leader in partitions.items()
        ]
        request = UpdateMetadataRequest(
            controller_id=self.controller,
            controller_epoch=CONTROLLER_EPOCH,
            topic_states=[
                UpdateMetadataTopicState(
                    topic_name=self.topic, topic_id=self.topic_id, partition_states=states
                )
            ]
            if states
            else [],
            live_brokers=[
                UpdateMetadataBroker(
                    id=broker,
                    endpoints=[UpdateMetadataEndpoint(port=9092, host=f"host{broker}", listener="PLAINTEXT")],
                    rack=self.racks.get(broker),
                )
                for broker in self.brokers
            ],
        )
        assert self.ask(request, 8).error_code == 0

    def assign(
        self,
        leader: int,
        *,
        isr: tuple[int, ...] | None = None,
        partition: int = 0,
        epoch: int | None = None,
        partition_epoch: int | None = None,
        replicas: tuple[int, ...] | None = None,
        adding: tuple[int, ...] = (),
        topic_id: bytes | None = None,
        controller_epoch: int = CONTROLLER_EPOCH,
        broker_epoch: int = -1,
        is_new: bool = True,
        recovering: bool = False,
    ) -> LeaderAndIsrResponse:
        """LeaderAndIsr for one partition, in the next epoch unless another one is named."""
        self.epoch = self.epoch + 1 if epoch is None else epoch
        state = LeaderAndIsrPartitionState(
            partition_index=partition,
            controller_epoch=controller_epoch,
            leader=leader,
            leader_epoch=self.epoch,
            isr=isr if isr is not None else self.brokers,
            partition_epoch=self.epoch if partition_epoch is None else partition_epoch,
            replicas=replicas if replicas is not None else self.brokers,
            adding_replicas=adding,
            is_new=is_new,
            leader_recovery_state=int(recovering),
        )
        request = LeaderAndIsrRequest(
            controller_id=SECOND,
            controller_epoch=controller_epoch,
            broker_epoch=broker_epoch,
            topic_states=[
                LeaderAndIsrTopicState(
                    topic_name=self.topic,
                    topic_id=self.topic_id if topic_id is None else topic_id,
                    partition_states=[state],
                )
            ],
        )
        response: LeaderAndIsrResponse = self.ask(request, 7)
        return response

    def assigned_code(self, leader: int, **settings: Any) -> int:
        """The partition's error code in the answer to ``assign``."""
        return self.assign(leader, **settings).topics[0].partition_errors[0].error_code

    def lead(self, isr: tuple[int, ...] | None = None, **settings: Any) -> "LedBroker":
        """Lead partition 0."""
        self.tell_metadata(p0=ME)
        assert self.assigned_code(ME, isr=isr, **settings) == 0
        return self

    def follow(self, leader: int = SECOND, **settings: Any) -> "LedBroker":
        """Follow partition 0."""
        self.tell_metadata(p0=leader)
        assert self.assigned_code(leader, **settings) == 0
        return self

    @property
    def partition(self) -> Any:
        return self.node.partitions.find(self.topic, 0)

    @property
    def log(self) -> Any:
        return self.partition.log

    # ---- clients

    def ask(self, message: Any, version: int, listener: str = "PLAINTEXT") -> Any:
        """Send a request on a connection of its own; others may be answered in the same turn."""
        connection = self.connect(listener)
        self.send(connection, message, version)
        answers = self.take_answers(connection, message_classes(ApiKey(message.spec.api_key))[1], version)
        assert len(answers) == 1, f"{len(answers)} answers to the request"
        return answers[0]

    def take_answers(self, connection: int, response: Any, version: int) -> list[Any]:
        """All answers that a connection got so far, decoded."""
        frames = [b"".join(each.parts) for each in self.written if each.connection == connection]
        self.written = [each for each in self.written if each.connection != connection]
        stream, found = b"".join(frames), []
        while stream:
            size = int.from_bytes(stream[:4], "big")
            found.append(decode_response(response, version, stream[4 : 4 + size])[1])
            stream = stream[4 + size :]
        return found

    def produce(
        self,
        batch: bytes | bytearray | None,
        *,
        acks: int = 1,
        version: int = 11,
        partition: int = 0,
        timeout_ms: int = 1_000,
        transactional_id: str | None = None,
        topic: str = TOPIC,
        connection: int | None = None,
    ) -> int:
        """Send a Produce; the connection to look for its answer."""
        connection = connection or self.connect()
        request = ProduceRequest(
            transactional_id=transactional_id,
            acks=acks,
            timeout_ms=timeout_ms,
            topic_data=[
                TopicProduceData(
                    name=topic, partition_data=[PartitionProduceData(index=partition, records=batch)]
                )
            ],
        )
        self.send(connection, request, version)
        return connection

    def produced(self, connection: int, version: int = 11) -> PartitionProduceResponse | None:
        """The answer to a Produce, if it came."""
        answers = self.take_answers(connection, ProduceResponse, version)
        return answers[0].responses[0].partition_responses[0] if answers else None

    def produce_now(self, batch: bytes | bytearray | None, **settings: Any) -> PartitionProduceResponse:
        """Produce and get the answer at once."""
        answer = self.produced(self.produce(batch, **settings), settings.get("version", 11))
        assert answer is not None, "the answer comes at once"
        return answer

    # ---- readers

    def fetch_request(
        self,
        offset: int,
        *,
        replica: int = -1,
        replica_epoch: int = -1,
        epoch: int | None = None,
        last_fetched_epoch: int = -1,
        log_start_offset: int = -1,
        session: tuple[int, int] = (0, -1),
        max_wait_ms: int = 0,
        min_bytes: int = 1,
        max_bytes: int = 10_000_000,
        partition_max_bytes: int = 1_000_000,
        isolation: int = 0,
        rack: str = "",
        partitions: tuple[int, ...] = (0,),
        forget: tuple[int, ...] = (),
    ) -> FetchRequest:
        """A Fetch of some partitions of the topic, all from one offset."""
        asked = [
            FetchPartition(
                partition=partition,
                current_leader_epoch=self.epoch if epoch is None else epoch,
                fetch_offset=offset,
                last_fetched_epoch=last_fetched_epoch,
                log_start_offset=log_start_offset,
                partition_max_bytes=partition_max_bytes,
            )
            for partition in partitions
        ]
        return FetchRequest(
            replica_state=ReplicaState(replica, replica_epoch),
            max_wait_ms=max_wait_ms,
            min_bytes=min_bytes,
            max_bytes=max_bytes,
            isolation_level=isolation,
            session_id=session[0],
            session_epoch=session[1],
            rack_id=rack,
            topics=[FetchTopic(topic=self.topic, topic_id=self.topic_id, partitions=asked)] if asked else [],
            forgotten_topics_data=[ForgottenTopic(topic_id=self.topic_id, partitions=forget)]
            if forget
            else [],
        )

    def fetch(self, offset: int, *, connection: int | None = None, version: int = 17, **settings: Any) -> int:
        """Send a Fetch; the connection to look for its answer."""
        connection = connection or self.connect()
        self.send(connection, self.fetch_request(offset, **settings), version)
        return connection

    def fetched(self, connection: int, version: int = 17) -> FetchResponse | None:
        """The answer to a Fetch, if it came."""
        answers = self.take_answers(connection, FetchResponse, version)
        return answers[0] if answers else None

    def fetch_now(self, offset: int, *, version: int = 17, **settings: Any) -> PartitionData:
        """Fetch one partition and get the answer at once."""
        answer = self.fetched(self.fetch(offset, version=version, **settings), version)
        assert answer is not None, "the answer comes at once"
        return answer.responses[0].partitions[0]

    # ---- the leader that this broker follows

    def connect_links(self) -> None:
        """Let every link open that the broker wants to open."""
        self.advance(0)
        for link in list(self.links):
            self.node.on_peer_connected(link)
        self.settle()

    def last_request(self, message: Any) -> tuple[int, int, int, Any]:
        """The newest request of that kind: link, correlation id, version, body."""
        found = self.peer_requests(message)
        assert found, f"no {message.__name__} was sent"
        return found[-1]

    def answer_peer(self, request: Any, response: Any) -> None:
        """Answer the newest request of that kind; links' frames are lent, so it is a fresh buffer."""
        link, correlation_id, version, _ = self.last_request(request)
        frame = b"".join(frame_response(response, version, correlation_id))[4:]
        self.node.on_peer_frame(link, memoryview(bytearray(frame)))
        self.settle()


def headers(data: PartitionData) -> list[BatchHeader]:
    """The batches of a fetched partition."""
    return list(batches(memoryview(data.records or b"")))
