"""A node in office on the bench: its peers take every order and say yes, unless a test says otherwise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ottla.broker.outputs import CloseLink, OpenLink, Output, SendOnLink, SubmitToZooKeeper
from ottla.config.areas import BrokerConfig
from ottla.model.cluster import BrokerRegistration, Endpoint
from ottla.model.ids import BrokerId, LeaderEpoch, TopicId, TopicPartition
from ottla.model.partition_state import LeaderAndIsr, ReplicaAssignment
from ottla.sim.machine.zookeeper_server import ZooKeeperServer
from ottla.wire.apis.leader_and_isr import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
)
from ottla.wire.apis.stop_replica import StopReplicaRequest, StopReplicaResponse
from ottla.wire.apis.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse
from ottla.wire.codec import decode
from ottla.wire.headers import decode_request_header, frame_response
from ottla.znodes import paths
from ottla.znodes.codec import (
    TopicNode,
    decode_partition_state,
    decode_topic,
    encode_broker,
    encode_partition_state,
    encode_topic,
)
from ottla.zookeeper.ops import (
    ANY_VERSION,
    Create,
    Data,
    Delete,
    GetChildren,
    GetData,
    Lost,
    Multi,
    Op,
    SetData,
)
from support.bench.node_bench import Bench, a_config

NAMES = {1: "one", 2: "two", 3: "three", 4: "four"}
_REQUESTS: dict[int, Any] = {4: LeaderAndIsrRequest, 5: StopReplicaRequest, 6: UpdateMetadataRequest}


class ControllerBench(Bench):
    """Broker 1 under test; the other brokers are znodes and a voice on the line."""

    def __init__(self, config: BrokerConfig | None = None, tree: ZooKeeperServer | None = None) -> None:
        super().__init__(config, tree)
        self.told: list[tuple[str, Any]] = []
        """What each broker was told, by its host name, in the order of sending."""
        self.silent: set[str] = set()
        """Hosts whose connections fail."""
        self.storage_errors: set[tuple[str, str, int]] = set()
        self.delete_errors: set[str] = set()
        self.lose: Callable[[Op], bool | None] = lambda op: None
        """Whether an operation's answer is lost: None no, True after it was applied, False before."""
        self.serves_itself = False
        """What broker 1 is told as a member reaches the real node, instead of a yes."""
        self._hosts: dict[int, str] = {}

    def settle(self) -> None:
        """Carry out outputs, and what is due without delay."""
        super().settle()
        while (deadline := self.node.next_deadline_ms()) is not None and deadline <= self.clock.now_ms:
            self.node.on_tick()
            super().settle()

    # ---- peers

    def _perform(self, output: Output) -> None:
        super()._perform(output)
        if isinstance(output, OpenLink):
            self._hosts[output.link] = output.host
            if output.host in self.silent:
                self.node.on_peer_lost(output.link, "connection refused")
            else:
                self.node.on_peer_connected(output.link)
        elif isinstance(output, SendOnLink):
            self._answer_request(output)
        elif isinstance(output, CloseLink):
            self._hosts.pop(output.link, None)

    def _answer_request(self, sent: SendOnLink) -> None:
        frame = b"".join(sent.parts)[4:]
        header, offset = decode_request_header(frame)
        host = self._hosts[sent.link]
        if header.api_key not in _REQUESTS:
            if self.serves_itself and host == "one" and host not in self.silent:
                self._serve_itself(sent.link, frame)
            return  # otherwise a fetch, or another wish that nobody answers
        request = decode(_REQUESTS[header.api_key], header.api_version, frame, offset)
        if host in self.silent:
            self.node.on_peer_lost(sent.link, "connection reset")
            return
        self.told.append((host, request))
        if self.serves_itself and host == "one":
            self._serve_itself(sent.link, frame)
            return
        response = b"".join(
            frame_response(self._response(host, request), header.api_version, header.correlation_id)
        )
        self.node.on_peer_frame(sent.link, memoryview(bytearray(response[4:])))

    def _serve_itself(self, link: int, frame: bytes) -> None:
        connection = self.connect()
        self.node.on_request(connection, memoryview(bytearray(frame)))
        self.settle()
        answers = [write for write in self.written if write.connection == connection]
        self.written = [write for write in self.written if write.connection != connection]
        for answer in answers:
            self.node.on_peer_frame(link, memoryview(bytearray(b"".join(answer.parts)[4:])))

    def _response(self, host: str, request: Any) -> Any:
        if isinstance(request, LeaderAndIsrRequest):
            return LeaderAndIsrResponse(
                topics=[
                    LeaderAndIsrTopicError(
                        topic_id=topic.topic_id,
                        partition_errors=[
                            LeaderAndIsrPartitionError(
                                partition_index=row.partition_index,
                                error_code=56
                                if (host, topic.topic_name, row.partition_index) in self.storage_errors
                                else 0,
                            )
                            for row in topic.partition_states
                        ],
                    )
                    for topic in request.topic_states
                ]
            )
        if isinstance(request, StopReplicaRequest):
            return StopReplicaResponse(error_code=-1 if host in self.delete_errors else 0)
        return UpdateMetadataResponse()

    def told_of(self, kind: type) -> list[tuple[str, Any]]:
        """Requests of one kind, with their receivers."""
        return [(host, request) for host, request in self.told if isinstance(request, kind)]

    # ---- ZooKeeper

    def answer(self, submitted: SubmitToZooKeeper) -> None:
        verdict = self.lose(submitted.operation)
        if verdict is None:
            super().answer(submitted)
            return
        if verdict:
            self.zk_log.append(submitted.operation)
            _, fired = self.tree.apply(submitted.operation, self.session, self.clock.wall_ms())
            self.deliver(fired)
        self.node.on_zk_result(submitted.token, Lost(maybe_applied=True))

    def register(self, *numbers: int) -> None:
        """Other brokers register; their znodes belong to the operator's session."""
        for number in numbers:
            registration = BrokerRegistration(
                BrokerId(number), -1, (Endpoint("PLAINTEXT", NAMES[number], 9092),)
            )
            self.zk(Create(paths.broker(number), encode_broker(registration, 1), ephemeral=True))

    def unregister(self, *numbers: int) -> None:
        for number in numbers:
            self.zk(Delete(paths.broker(number), ANY_VERSION))

    def create_topic(self, name: str, *replicas: tuple[int, ...]) -> None:
        """Somebody creates a topic, as any broker may."""
        assignments = {i: ReplicaAssignment(tuple(map(BrokerId, held))) for i, held in enumerate(replicas)}
        topic_id = TopicId(name.encode().ljust(16, b"\x07")[:16])
        self.zk(Create(paths.topic(name), encode_topic(TopicNode(topic_id, assignments))))

    def data(self, path: str) -> bytes | None:
        found = self.zk(GetData(path))
        return found.data if isinstance(found, Data) else None

    def has(self, path: str) -> bool:
        return isinstance(self.zk(GetData(path)), Data)

    def children(self, path: str) -> list[str]:
        return sorted(getattr(self.zk(GetChildren(path)), "names", ()))

    def state(self, topic: str, index: int) -> LeaderAndIsr | None:
        found = self.zk(GetData(paths.partition_state(TopicPartition(topic, index))))
        return decode_partition_state(found.data, found.stat.version) if isinstance(found, Data) else None

    def led(self, topic: str, index: int) -> tuple[int, int, tuple[int, ...]]:
        """Leader, leader epoch and ISR."""
        state = self.state(topic, index)
        assert state is not None, f"{topic}-{index} has no state"
        return state.leader, state.leader_epoch, state.isr

    def topic(self, name: str) -> TopicNode:
        return decode_topic(name, self.data(paths.topic(name)))

    def set_state(self, topic: str, index: int, leader: int, isr: tuple[int, ...], epoch: int = 0) -> None:
        """Write a state behind the controller's back."""
        state = LeaderAndIsr(BrokerId(leader), LeaderEpoch(epoch), tuple(map(BrokerId, isr)), 0, 1)
        path = paths.partition_state(TopicPartition(topic, index))
        self.zk(SetData(path, encode_partition_state(state), ANY_VERSION))

    def depose(self, by: int = 2) -> None:
        """Another broker becomes controller, as if this one's session were thought dead."""
        epoch = int(self.data(paths.CONTROLLER_EPOCH) or b"0")
        self.zk(
            Multi(
                (
                    Delete(paths.CONTROLLER, ANY_VERSION),
                    Create(
                        paths.CONTROLLER, b'{"version":2,"brokerid":%d,"timestamp":"1"}' % by, ephemeral=True
                    ),
                    SetData(paths.CONTROLLER_EPOCH, b"%d" % (epoch + 1), ANY_VERSION),
                )
            )
        )


def in_office(*others: int, topics: dict[str, tuple[tuple[int, ...], ...]] | None = None) -> ControllerBench:
    """Broker 1 is controller over itself and these brokers."""
    bench = ControllerBench().start()
    assert bench.node.controller.is_active
    bench.register(*others)
    for name, replicas in (topics or {}).items():
        bench.create_topic(name, *replicas)
    bench.told.clear()
    bench.zk_log.clear()
    return bench


def serving(*others: int, topics: dict[str, tuple[tuple[int, ...], ...]] | None = None, **settings: object):
    bench = ControllerBench(a_config(**settings))
    bench.serves_itself = True
    bench.start()
    bench.register(*others)
    for name, replicas in (topics or {}).items():
        bench.create_topic(name, *replicas)
    return bench


def out_of_office() -> ControllerBench:
    bench = serving(2)
    bench.depose(by=2)
    assert not bench.node.controller.is_active
    return bench
