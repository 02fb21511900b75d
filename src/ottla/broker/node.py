"""One broker as one synchronous object: what happens goes in, what must be done comes out."""

import logging
from collections.abc import Callable
from enum import Enum
from random import Random
from typing import Any

from ottla.broker import apis
from ottla.broker.apis import api_versions
from ottla.broker.clock import Clock
from ottla.broker.connections import Connection, Connections
from ottla.broker.controller_host import ControllerHost
from ottla.broker.coordinator_host import CoordinatorHost
from ottla.broker.dynamic_config import DynamicConfigs
from ottla.broker.features import Features
from ottla.broker.gone_topics import GoneTopics
from ottla.broker.metadata_image import MetadataImage, MetadataUpdate
from ottla.broker.meters import Meters
from ottla.broker.orders import Orders
from ottla.broker.outputs import Exit, Output, RunInThread
from ottla.broker.partitions import Partitions
from ottla.broker.peer_links import PeerLinks
from ottla.broker.producer_ids import ProducerIds
from ottla.broker.registration import Registration
from ottla.broker.request import Request
from ottla.broker.shutdown import Shutdown
from ottla.broker.startup import Startup
from ottla.broker.timers import Timers
from ottla.broker.topic_creation import TopicCreation
from ottla.broker.waiting import Waiting
from ottla.broker.zk_desk import ZkDesk
from ottla.config.areas import BrokerConfig
from ottla.model.errors import MalformedRequest
from ottla.model.ids import BrokerId
from ottla.storage.disk import Disk
from ottla.storage.log_dirs import LogDirs
from ottla.wire.codec import decode
from ottla.wire.headers import decode_request_header
from ottla.wire.keys import ApiKey
from ottla.zookeeper.ops import AuthFailed, SessionConnected, SessionExpired, SessionSuspended

log = logging.getLogger(__name__)


FROZEN_MS = 1_000
"""A timer that is so late tells that the process stood still."""


class NodeState(Enum):
    """Where the broker stands in its life."""

    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"


class Node:
    """The whole broker without its edge. Its parts hang on it, each in its own file.

    The edge calls one ``on_…`` method per happening, then ``take_outputs`` and performs those in order.
    Frames are lent for the length of the call: whoever needs bytes longer copies or stores them.
    """

    def __init__(self, config: BrokerConfig, clock: Clock, disk: Disk, random: Random) -> None:
        self.clock = clock
        self.disk = disk
        self.random = random
        self.state = NodeState.STARTING
        self.broker_id: BrokerId = BrokerId(config.broker_id)
        self.cluster_id = ""
        self.controller_epoch = 0
        """The highest seen in a controller's request; requests with a lower one are refused."""
        self.assigned_as = -1
        """As which registration (by its epoch) this broker was last told what to lead."""
        self.outputs: list[Output] = []
        self.log_dirs: LogDirs
        self.apis = apis.by_key()
        self.meters = Meters()
        self.timers = Timers(clock)
        self.connections = Connections(self.outputs, config.listeners.control_plane_listener_name)
        self.zk = ZkDesk(self.outputs, self.timers)
        self.links = PeerLinks(self)
        self.metadata = MetadataImage()
        self.gone_topics = GoneTopics(self)
        self.configs = DynamicConfigs(self, config)
        self.registration = Registration(self)
        self.features = Features(self)
        self.producer_ids = ProducerIds(self)
        self.topic_creation = TopicCreation(self)
        self.waiting = Waiting(self)
        self.partitions = Partitions(self)
        self.orders = Orders(self)
        self.controller = ControllerHost(self)
        self.coordinator = CoordinatorHost(self)
        self.partitions.listeners.append(self.coordinator)
        self.startup = Startup(self)
        self.shutdown = Shutdown(self)
        self._work: dict[int, Callable[[Any], None]] = {}
        self._next_work = 0

    @property
    def config(self) -> BrokerConfig:
        """The settings of this moment: the file's, with the dynamic ones of ZooKeeper over them."""
        return self.configs.broker

    # ---- clients

    def on_client_connected(self, connection_id: int, listener: str, host: str) -> None:
        """A client came in through that listener."""
        self.connections.connected(connection_id, listener, host)

    def on_request(self, connection_id: int, frame: memoryview) -> None:
        """One whole request, without its size; the frame is lent for the call."""
        connection = self.connections.get(connection_id)
        if connection is None or connection.is_closed or connection.is_doomed:
            return
        if connection.must_wait(frame):
            connection.hold(frame)
        else:
            self._handle(connection, frame)

    def on_held(self, connection_id: int) -> None:
        """What a client sent before, while others of its requests waited for their answers."""
        connection = self.connections.get(connection_id)
        while connection is not None and not connection.is_doomed:
            frame = connection.next_held()
            if frame is None:
                return
            self._handle(connection, memoryview(frame))

    def _handle(self, connection: Connection, frame: memoryview) -> None:
        if self.state is NodeState.STOPPING:
            connection.close("the broker stops")
            return
        try:
            (api_key, version, correlation_id, client_id), body_offset = decode_request_header(frame)
            api = self.apis[api_key] if 0 <= api_key < len(self.apis) else None
            request = Request(connection, api_key, version, correlation_id, client_id, len(frame))
            connection.accept(request)
            if api is None or not api.min_version <= version <= api.max_version:
                self._refuse(request)
                return
            if api.request is None:
                api.load()
            body = decode(api.request, version, frame, body_offset)
        except MalformedRequest as malformed:
            connection.close(f"malformed request: {malformed}")
            return
        self.zk.asker = request
        try:
            response = api.handle(self, request, body)
        finally:
            self.zk.asker = None
        if response is not None:
            request.reply(response)

    def _refuse(self, request: Request) -> None:
        """An API or a version that is not on the list: only ApiVersions has a way to say so."""
        if request.api_key == ApiKey.API_VERSIONS:
            api_versions.refuse_version(self, request)
        else:
            request.hang_up(f"unsupported api_key={request.api_key} version={request.api_version}")

    def on_client_lost(self, connection_id: int) -> None:
        """The client has gone; what it waited for is forgotten."""
        connection = self.connections.lost(connection_id)
        if connection is not None:
            self.waiting.on_client_lost(connection)

    # ---- peers

    def on_peer_connected(self, link_id: int) -> None:
        self.links.on_connected(link_id)

    def on_peer_frame(self, link_id: int, frame: memoryview) -> None:
        """One whole answer of a peer, without its size; the frame is lent for the call."""
        self.links.on_frame(link_id, frame)

    def on_peer_lost(self, link_id: int, reason: str) -> None:
        self.links.on_lost(link_id, reason)

    def inter_broker_address(self, broker: BrokerId) -> tuple[str, int] | None:
        """Where the brokers reach that one, by the controller's last word."""
        endpoint = self.metadata.endpoint(broker, self.config.listeners.inter_broker_listener_name)
        return (endpoint.host, endpoint.port) if endpoint is not None else None

    # ---- ZooKeeper

    def on_zk_result(self, token: int, result: Any) -> None:
        """The answer of one operation."""
        self.zk.on_result(token, result)

    def on_zk_watch(self, event: Any) -> None:
        """A watch fired; whoever registered for the path reads again."""
        self.zk.on_watch(event)

    def on_zk_session(self, event: Any) -> None:
        """The session opened, faltered or ended."""
        match event:
            case SessionConnected():
                self.zk.connected(event.session_id)
                if event.is_new:
                    self._on_new_session()
            case SessionSuspended():
                self.zk.suspended()
            case SessionExpired():
                log.warning("zookeeper session expired broker=%d", self.broker_id)
                self._on_session_over()
            case AuthFailed():
                log.error("no zookeeper session broker=%d reason=%s", self.broker_id, event.reason)
                self._on_session_over()
                if self.state is NodeState.STARTING:
                    self.outputs.append(Exit(1, f"ZooKeeper gives no session: {event.reason}"))

    def _on_session_over(self) -> None:
        self.zk.expired()
        self.assigned_as = -1
        self.controller.on_session_expired()
        self.registration.on_session_expired()

    def _on_new_session(self) -> None:
        if self.state is NodeState.STARTING:
            self.startup.on_session()
        elif self.state is NodeState.RUNNING:
            self.registration.register_again(self._on_registered_again)
            self.configs.on_new_session()
            self.features.read()

    def _on_registered_again(self) -> None:
        self.controller.on_new_session()

    # ---- what the parts tell each other

    def apply_metadata(self, update: MetadataUpdate) -> None:
        """An UpdateMetadata passed the fences: the picture changes, and everyone who looks at it hears so."""
        change = self.metadata.apply(update)
        self.configs.forget_topics(change.deleted_topics)
        self.partitions.on_metadata_changed(change)
        self.coordinator.on_metadata_changed(change)
        self.controller.on_metadata_changed()

    def run_in_thread(self, work: Callable[[], Any], then: Callable[[Any], None]) -> None:
        """Do slow work off the loop; ``then`` gets what it returned, or the exception it raised."""
        self._next_work += 1
        self._work[self._next_work] = then
        self.outputs.append(RunInThread(self._next_work, work))

    # ---- life

    def start(self) -> None:
        """Begin; the edge is already connecting to ZooKeeper."""
        self.startup.begin()

    @property
    def is_started(self) -> bool:
        return self.state is not NodeState.STARTING

    def started(self) -> None:
        """The broker is registered and serves."""
        self.state = NodeState.RUNNING
        self.coordinator.start()
        self.controller.start()

    def stopping(self) -> None:
        """Requests are refused from now on."""
        self.state = NodeState.STOPPING

    @property
    def is_untold(self) -> bool:
        """The session ended, and no controller has said since what this broker leads."""
        return self.assigned_as < self.registration.broker_epoch

    def may_be_deposed(self) -> bool:
        """Others may lead by now: ZooKeeper is out of reach, this process has just been frozen, or its
        session ended."""
        return self.is_untold or not self.zk.is_connected or self.timers.late_ms() > FROZEN_MS

    def begin_shutdown(self) -> None:
        """Leave in order: leaderships first, then clients, logs and the registration. Twice is once."""
        self.shutdown.begin()

    # ---- time

    def on_work_done(self, token: int, outcome: Any) -> None:
        """A thread finished what ``RunInThread`` asked."""
        self._work.pop(token)(outcome)

    def on_tick(self) -> None:
        """The nearest deadline has come."""
        self.timers.run_due()

    def next_deadline_ms(self) -> int | None:
        """When to tick next, by the monotonic clock."""
        return self.timers.next_deadline_ms()

    def take_outputs(self) -> list[Output]:
        """End of the turn: parked requests that became ready are answered, then all outputs go out."""
        self.waiting.end_turn()
        outputs = self.outputs[:]
        self.outputs.clear()
        return outputs
