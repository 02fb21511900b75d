"""One broker as one synchronous object: what happens goes in, what must be done comes out."""

import logging
from random import Random
from typing import Any

from ottla.broker import apis
from ottla.broker.access.authorizer import Authorizer
from ottla.broker.access.own_rights import why_not_heard
from ottla.broker.access.rule_store import RuleStore
from ottla.broker.apis import guards
from ottla.broker.apis.cluster import api_versions
from ottla.broker.clients.connections import NUMBER_END, Connection, Connections
from ottla.broker.clients.fetch_context import FetchContext
from ottla.broker.clients.fetch_session import FetchSessions
from ottla.broker.clients.logins import Logins
from ottla.broker.clients.request import Request
from ottla.broker.controlling.candidate import ControllerHost
from ottla.broker.coordinating.consumer_offsets import consumer_offsets
from ottla.broker.coordinating.host import CoordinatorHost
from ottla.broker.coordinating.markers import MarkerSender
from ottla.broker.coordinating.successors import Successors
from ottla.broker.coordinating.transaction_state import transaction_state
from ottla.broker.coordinating.verifier import TransactionVerifier
from ottla.broker.decisions.log import DecisionLog
from ottla.broker.life.registration import Registration
from ottla.broker.life.shutdown import Shutdown
from ottla.broker.life.startup import Startup
from ottla.broker.metadata.features import Features
from ottla.broker.metadata.gone_topics import GoneTopics
from ottla.broker.metadata.image import MetadataImage, MetadataUpdate
from ottla.broker.metadata.waits import MetadataWaits
from ottla.broker.outputs import Exit, Output
from ottla.broker.peers.links import PeerLinks
from ottla.broker.producers.ids import ProducerIds
from ottla.broker.quotas.enforcer import ClientQuotas
from ottla.broker.replicas.assignment import Assignment
from ottla.broker.replicas.context import PartitionContext
from ottla.broker.replicas.directory_move import DirectoryMoves
from ottla.broker.replicas.following.fetchers import Fetchers
from ottla.broker.replicas.hosted import Partitions
from ottla.broker.replicas.housekeeping import Housekeeping
from ottla.broker.replicas.isr_proposals import IsrProposals
from ottla.broker.replicas.producer_order import ProducerOrder
from ottla.broker.replicas.throttles import Throttles
from ottla.broker.runtime.clock import Clock
from ottla.broker.runtime.parked import Waiting
from ottla.broker.runtime.runtime import Runtime
from ottla.broker.runtime.state import BrokerState
from ottla.broker.runtime.tasks import TaskQueue
from ottla.broker.settings.changes import ConfigChanges
from ottla.broker.settings.dynamic import DynamicConfigs
from ottla.broker.topics.creation import TopicCreation
from ottla.config.areas import BrokerConfig
from ottla.model.errors import MalformedRequest
from ottla.model.ids import BrokerId, TopicPartition
from ottla.security.principal import ANONYMOUS, Principal
from ottla.storage.directories.log_dirs import LogDirs
from ottla.storage.disk.port import Disk
from ottla.wire.codec import decode
from ottla.wire.headers import decode_request_header
from ottla.wire.keys import ApiKey
from ottla.zookeeper.ops import AuthFailed, SessionConnected, SessionExpired, SessionSuspended

log = logging.getLogger(__name__)


class Node:
    """The whole broker without its edge. Its parts hang on it, each in its own file.

    The edge calls one ``on_…`` method per happening, then ``take_outputs`` and performs those in order.
    Frames are lent for the length of the call: whoever needs bytes longer copies or stores them.
    """

    own_subject: str | None = None
    """Whom this broker's certificate names to the others, if it has one."""
    serves_plainly = True
    """Nobody asks before each request whether it is allowed, or counts it: plain ones go the short way."""

    def __init__(
        self, config: BrokerConfig, clock: Clock, disk: Disk, random: Random, secrets: Random | None = None
    ) -> None:
        """``secrets`` makes what nobody may guess; ``random`` does where nobody wants to."""
        self.runtime = Runtime(config, clock, random)
        self._secrets = secrets or random
        self.identity = self.runtime.identity
        self.clock = clock
        self.random = random
        self.outputs = self.runtime.outputs
        self.meters = self.runtime.meters
        self.timers = self.runtime.timers
        self.tasks = self.runtime.tasks
        self.zk = self.runtime.zk
        self.state = BrokerState.STARTING
        self.disk = disk
        self.log_dirs = LogDirs(disk, config.log_management.log_dirs)
        self.apis = apis.by_key()
        self.connections = Connections(self.outputs, config.listeners.control_plane_listener_name)
        self.links = PeerLinks(
            self.outputs,
            self.timers,
            clock,
            broker_id=lambda: self.identity.broker_id,
            request_timeout_ms=config.connections.request_timeout_ms,
            address_of=self.inter_broker_address,
            listener=config.listeners.inter_broker_listener_name,
            login=config.listeners.logins.get(config.listeners.inter_broker_listener_name),
            make_nonce=self._nonce,
        )
        self.metadata = MetadataImage()
        self.gone_topics = GoneTopics(self.runtime.own, self.metadata, self.apply_metadata)
        self.features = Features(self.zk)
        self.configs = DynamicConfigs(self.runtime, self.metadata)
        self.config_changes = ConfigChanges(self.runtime, self.metadata, self.configs)
        self.producer_ids = ProducerIds(self.identity, self.links, self.metadata)
        self.topic_creation = TopicCreation(self.runtime, self.metadata)
        self.waiting = Waiting(clock, self.timers)
        self.metadata_waits = MetadataWaits(self.timers)
        self.decisions = DecisionLog(
            self.runtime,
            self.links,
            self.metadata,
            is_controller=lambda: self.controller.is_active,
            high_watermark=self.high_watermark,
        )
        self.controller = ControllerHost(self.runtime, self.links, self.decisions.take)
        self._build_replicas()
        self.control_requests = TaskQueue(self.tasks, self.timers)
        """What the controller asked for and is not yet done: one request after another, as in Kafka."""
        self._build_coordinators()
        self.configs.listeners += [self.partitions, self.controller]
        self._build_life()

    def _build_access(self) -> None:
        rights = self.config.authorizer
        self.authorizer = None if rights is None else Authorizer(rights)
        """Who decides what clients may do; None: everybody may do everything."""
        self.rule_store = None if self.authorizer is None else RuleStore(self.runtime, self.authorizer)
        if self.authorizer is not None:
            self.serves_plainly = False

    def _build_logins(self) -> None:
        self.client_quotas = ClientQuotas(self.runtime, self._enforce)
        self.configs.quotas.tell = self.client_quotas.set
        self.logins = Logins(
            self.runtime,
            self.connections,
            self.configs.users.of,
            self._nonce,
            tell_versions=lambda request, body: api_versions.handle(self, request, body),
            refuse_version=lambda request: api_versions.refuse_version(self, request),
        )

    def _enforce(self, quotas: ClientQuotas) -> None:
        """The first quota was set: every request is counted from now on."""
        self.serves_plainly = False
        self.connections.enforce(quotas)

    def _build_replicas(self) -> None:
        self.producer_order = ProducerOrder(self.clock)
        self.isr_proposals = IsrProposals(self.runtime, self.links, self.metadata)
        self.throttles = Throttles(self.runtime)
        self.fetchers = Fetchers(self.runtime, self.links, self.throttles, self.decisions)
        self.partitions = Partitions(
            self.runtime,
            PartitionContext(self.runtime, self.waiting, self.isr_proposals, self.producer_order),
            self.log_dirs,
            self.fetchers,
            self.metadata,
            self.configs.log_config,
        )
        self.housekeeping = Housekeeping(self.runtime, self.log_dirs, self.partitions)
        self.directory_moves = DirectoryMoves(
            self.runtime, self.log_dirs, self.partitions, self.throttles, self.housekeeping
        )
        self.assignment = Assignment(
            self.runtime,
            self.log_dirs,
            self.partitions,
            self.fetchers,
            self.directory_moves,
            self.configs.log_config,
            self.decisions,
        )
        slots = self.config.replication.max_incremental_fetch_session_cache_slots
        self.fetch_sessions = FetchSessions(slots, self.random)
        self.fetch_context = FetchContext(
            self.runtime, self.waiting, self.metadata, self.partitions, self.throttles
        )

    def _build_coordinators(self) -> None:
        config = self.config
        self.markers = MarkerSender(self.timers, self.links, self.metadata)
        self.group_coordinator = CoordinatorHost(
            consumer_offsets(config.groups, self.random),
            self.runtime,
            self.partitions,
            self.metadata,
            self.markers,
            self.decisions.on_transaction_fenced,
        )
        self.transaction_coordinator = CoordinatorHost(
            transaction_state(
                config.transactions, config.connections.request_timeout_ms, self.producer_ids.take
            ),
            self.runtime,
            self.partitions,
            self.metadata,
            self.markers,
            self.decisions.on_transaction_fenced,
        )
        self.successors = Successors(self.identity, self.links, self.metadata)
        self.partitions.listeners += [self.group_coordinator, self.transaction_coordinator]
        self.transaction_verifier = TransactionVerifier(
            self.identity, self.links, self.metadata, self.transaction_coordinator
        )

    def _build_life(self) -> None:
        self._build_access()
        self._build_logins()
        self.registration = Registration(self.runtime, self.log_dirs)
        self.startup = Startup(
            self.runtime,
            self.log_dirs,
            self.registration,
            self.features,
            self.configs,
            self.rule_store,
            self._on_logs_open,
            self._on_started,
        )
        self.shutdown = Shutdown(
            self.runtime,
            self.metadata,
            self.links,
            self.log_dirs,
            when_written=self.decisions.when_written,
            stop_rooms=self._stop_rooms,
            when_quiet=self.housekeeping.when_quiet,
        )

    @property
    def config(self) -> BrokerConfig:
        """The settings of this moment: the file's, with the dynamic ones of ZooKeeper over them."""
        return self.runtime.config

    @property
    def broker_id(self) -> BrokerId:
        return self.identity.broker_id

    # ---- clients

    def on_client_connected(
        self, connection_id: int, listener: str, host: str, principal: Principal = ANONYMOUS
    ) -> None:
        """A client came in through that listener; it may have shown a certificate that says who it is."""
        connection = self.connections.connected(connection_id, listener, host, principal)
        wait_ms = self.client_quotas.connection_wait_ms(host)
        if wait_ms:
            connection.turn_away(wait_ms, self.timers)
        else:
            self.logins.connected(connection)

    def on_request(self, connection_id: int, frame: memoryview) -> None:
        """One whole request, without its size; the frame is lent for the call."""
        connection = self.connections.get(connection_id)
        if connection is None:
            connection = self._let_through(connection_id, frame)
            if connection is None:
                return
        if connection.is_closed or connection.is_doomed:
            return
        if self.serves_plainly:
            for end in connection.plain_ends:
                plain = connection.plain.get(bytes(frame[NUMBER_END:end]))
                if plain is not None and plain.serve(connection, frame):
                    return
        if connection.must_wait(frame):
            connection.hold(frame)
        else:
            self._handle(connection, frame)

    def _let_through(self, connection_id: int, frame: memoryview) -> Connection | None:
        """A guarded connection, if its login lets this request be served."""
        connection = self.connections.guarded(connection_id)
        if connection is None or connection.is_closed or connection.is_doomed:
            return None
        if self.state is BrokerState.STOPPING:
            connection.close("the broker stops")
            return None
        return connection if self.logins.lets_through(connection, frame) else None

    def on_held(self, connection_id: int) -> None:
        """What a client sent before, while others of its requests waited for their answers. A login may have
        ended meanwhile, or have begun anew."""
        connection = self.connections.get(connection_id) or self.connections.guarded(connection_id)
        while connection is not None and not connection.is_doomed:
            frame = connection.next_held()
            if frame is None:
                return
            is_guarded = self.connections.guarded(connection_id) is not None
            if not is_guarded or self.logins.lets_through(connection, memoryview(frame)):
                self._handle(connection, memoryview(frame))

    def _handle(self, connection: Connection, frame: memoryview) -> None:
        if self.state is BrokerState.STOPPING:
            connection.close("the broker stops")
            return
        try:
            (api_key, version, correlation_id, client_id), body_offset = decode_request_header(frame)
            api = self.apis[api_key] if 0 <= api_key < len(self.apis) else None
            request = Request(connection, api_key, version, correlation_id, client_id, len(frame))
            connection.accept(request)
            if connection.quotas is not None:
                connection.quotas.begin(request)
            if api is None or not api.min_version <= version <= api.max_version:
                self._refuse(request)
                return
            if api.request is None:
                api.load()
            body = decode(api.request, version, frame, body_offset)
        except MalformedRequest as malformed:
            connection.close(f"malformed request: {malformed}")
            return
        authorizer = self.authorizer
        if authorizer is None:
            response = api.handle(self, request, body)
        else:
            response = guards.serve(self, authorizer, api, request, body)
        if api.learn is not None and connection.learns and self.serves_plainly:
            api.learn(self, request, body)
        if response is not None:
            request.reply(response)
        elif connection.quotas is not None:
            connection.quotas.parked(request)

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
                if self.state is BrokerState.STARTING:
                    self.outputs.append(Exit(1, f"ZooKeeper gives no session: {event.reason}"))

    def _on_session_over(self) -> None:
        self.zk.expired()
        self.identity.assigned_as = -1
        self.controller.on_session_expired()
        self.registration.on_session_expired()

    def _on_new_session(self) -> None:
        if self.state is BrokerState.STARTING:
            self.startup.on_session()
        elif self.state is BrokerState.RUNNING:
            self.registration.register_again(self.controller.on_new_session)
            self.configs.on_new_session()
            if self.rule_store is not None:
                self.rule_store.on_new_session()
            self.features.read()

    def _nonce(self) -> str:
        """What no login has had before."""
        return f"{self._secrets.getrandbits(160):x}"

    # ---- what the parts tell each other

    def apply_metadata(self, update: MetadataUpdate) -> None:
        """An UpdateMetadata passed the fences: the picture changes, and everyone who looks at it hears so."""
        change = self.metadata.apply(update)
        self.configs.forget_topics(change.deleted_topics)
        self.partitions.on_metadata_changed(change)
        self.group_coordinator.on_metadata_changed(change)
        self.transaction_coordinator.on_metadata_changed(change)
        self.markers.on_metadata_changed(change)
        self.successors.on_metadata_changed(change)
        self.metadata_waits.check()

    def high_watermark(self, name: TopicPartition) -> int | None:
        """What this broker's own replica knows to have been committed, if it has one."""
        own = self.log_dirs.logs.get(name)
        return None if own is None else own.high_watermark

    # ---- life

    def start(self) -> None:
        """Begin; the edge is already connecting to ZooKeeper."""
        self.startup.begin()

    @property
    def is_started(self) -> bool:
        return self.state is not BrokerState.STARTING

    def _on_logs_open(self) -> None:
        self.housekeeping.start()
        self.partitions.start()

    def _on_started(self) -> None:
        """The broker is registered and serves."""
        self.state = BrokerState.RUNNING
        if self.authorizer is not None:
            why = why_not_heard(self.authorizer.rules, self.config.listeners, self.own_subject)
            if why is not None:
                log.warning("%s", why)
        self.controller.start()

    def _stop_rooms(self) -> None:
        """Requests are refused from now on; what waits is answered."""
        self.state = BrokerState.STOPPING
        self.group_coordinator.stop()
        self.transaction_coordinator.stop()
        self.control_requests.clear()
        self.waiting.stop()
        self.housekeeping.stop()
        self.directory_moves.stop()
        self.partitions.stop()
        self.controller.stop()
        self.links.close_all("the broker stops")

    def begin_shutdown(self) -> None:
        """Leave in order: leaderships first, then clients, logs and the registration. Twice is once."""
        self.shutdown.begin()

    # ---- time

    def on_work_done(self, token: int, outcome: Any) -> None:
        """A thread finished what ``RunInThread`` asked."""
        self.runtime.threads.done(token, outcome)

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
