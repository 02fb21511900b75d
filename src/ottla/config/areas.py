"""A broker's settings by area: each part of the node is handed the area it needs, never everything.

A field is named after its Kafka setting with ``_`` for ``.``, so that one search finds both.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from ottla.config.group import GroupConfig
from ottla.config.log import UNLIMITED, LogConfig
from ottla.config.tls.settings import TlsSettings
from ottla.model.cluster import Endpoint
from ottla.security.sasl.mechanisms import SaslLogin
from ottla.security.sasl.server_login import ListenerSasl


@dataclass(frozen=True, slots=True, kw_only=True)
class ZooKeeperConfig:
    """How to reach ZooKeeper, and how long a session outlives silence."""

    zookeeper_connect: str = "localhost:2181"
    zookeeper_connection_timeout_ms: int | None = None
    zookeeper_session_timeout_ms: int = 18_000
    ottla_guard_enable: bool = True

    @property
    def connection_timeout_ms(self) -> int:
        """How long the start waits for ZooKeeper."""
        timeout_ms = self.zookeeper_connection_timeout_ms
        return self.zookeeper_session_timeout_ms if timeout_ms is None else timeout_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenersConfig:
    """Where the broker listens, and what it tells others to connect to."""

    listeners: tuple[Endpoint, ...] = ()
    advertised_listeners: tuple[Endpoint, ...] = ()
    inter_broker_listener_name: str = "PLAINTEXT"
    control_plane_listener_name: str | None = None
    sasl: Mapping[str, ListenerSasl] = field(default_factory=dict)
    """By listener: how its clients log in. On a listener that is not here nobody is asked."""
    logins: Mapping[str, SaslLogin] = field(default_factory=dict)
    """By listener: as whom this broker comes to that listener of the others."""
    tls: Mapping[str, TlsSettings] = field(default_factory=dict)
    """By listener: how its connections are encrypted. Those of a listener that is not here are not."""


@cache
def parse_connection_overrides(text: str) -> dict[str, int]:
    """``host:count`` pairs, separated by commas; raises ``ValueError`` otherwise."""
    pairs = [pair.strip().rpartition(":") for pair in text.split(",") if pair.strip()]
    if not all(host for host, _, _ in pairs):
        raise ValueError(f"{text!r} is not host:count, separated by commas")
    return {host.strip(): int(count) for host, _, count in pairs}


def parse_address(text: str) -> tuple[str, int]:
    """``host:port``, an IPv6 address in brackets; raises ``ValueError`` otherwise."""
    host, colon, port = text.strip().rpartition(":")
    if not colon or not host or not 0 <= int(port) <= 65_535:
        raise ValueError(f"{text!r} is not host:port")
    return host.removeprefix("[").removesuffix("]"), int(port)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionsConfig:
    """Limits of the listeners and of each connection."""

    connection_failed_authentication_delay_ms: int = 100
    connections_max_idle_ms: int = 600_000
    max_connections: int = 2_147_483_647
    max_connections_per_ip: int = 2_147_483_647
    max_connections_per_ip_overrides: str = ""
    socket_listen_backlog_size: int = 50
    socket_receive_buffer_bytes: int = 102_400
    socket_request_max_bytes: int = 104_857_600
    socket_send_buffer_bytes: int = 102_400
    request_timeout_ms: int = 30_000
    sasl_server_max_receive_size: int = 524_288
    ottla_cuts_file: str = ""
    ottla_metrics_listener: str = ""

    @property
    def metrics_address(self) -> tuple[str, int] | None:
        """Where metrics are shown; None: nowhere."""
        return parse_address(self.ottla_metrics_listener) if self.ottla_metrics_listener else None

    @property
    def max_connections_by_ip(self) -> dict[str, int]:
        """The limits of single addresses."""
        return parse_connection_overrides(self.max_connections_per_ip_overrides)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotasConfig:
    """Over which windows what clients use is measured."""

    quota_window_num: int = 11
    quota_window_size_seconds: int = 1
    controller_quota_window_num: int = 11
    controller_quota_window_size_seconds: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizerConfig:
    """Who may do everything, and what holds where no access rule says anything."""

    super_users: tuple[str, ...] = ()
    allow_everyone_if_no_acl_found: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicsConfig:
    """What a topic gets when its creator does not say."""

    auto_create_topics_enable: bool = True
    default_replication_factor: int = 1
    delete_topic_enable: bool = True
    num_partitions: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicationConfig:
    """How replicas follow their leader, and when a leader drops them from the ISR."""

    fetch_max_bytes: int = 57_671_680
    follower_replication_throttled_rate: int = UNLIMITED
    leader_replication_throttled_rate: int = UNLIMITED
    max_incremental_fetch_session_cache_slots: int = 1_000
    num_replica_fetchers: int = 1
    replica_alter_log_dirs_io_max_bytes_per_second: int = UNLIMITED
    replica_fetch_backoff_ms: int = 1_000
    replica_fetch_max_bytes: int = 1_048_576
    replica_fetch_min_bytes: int = 1
    replica_fetch_response_max_bytes: int = 10_485_760
    replica_fetch_wait_max_ms: int = 500
    replica_high_watermark_checkpoint_interval_ms: int = 5_000
    replica_lag_time_max_ms: int = 30_000
    replica_selector_class: str | None = None
    replica_socket_timeout_ms: int = 30_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LogManagementConfig:
    """The log directories and what is done in them from time to time."""

    log_dirs: tuple[str, ...] = ("/tmp/kafka-logs",)
    log_cleaner_enable: bool = True
    log_cleaner_backoff_ms: int = 15_000
    log_flush_offset_checkpoint_interval_ms: int = 60_000
    log_retention_check_interval_ms: int = 300_000
    producer_id_expiration_check_interval_ms: int = 600_000
    producer_id_expiration_ms: int = 86_400_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerConfig:
    """What the controller does by itself."""

    auto_leader_rebalance_enable: bool = True
    leader_imbalance_check_interval_seconds: int = 300
    leader_imbalance_per_broker_percentage: int = 10
    ottla_decisions_enable: bool = True
    ottla_replica_placement: str = "shifted"
    unclean_leader_election_enable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ShutdownConfig:
    """How a broker leaves."""

    controlled_shutdown_enable: bool = True
    controlled_shutdown_max_retries: int = 3
    controlled_shutdown_retry_backoff_ms: int = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionsConfig:
    """The transaction coordinator and its topic."""

    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = 10_000
    transaction_max_timeout_ms: int = 900_000
    transaction_partition_verification_enable: bool = True
    transaction_remove_expired_transaction_cleanup_interval_ms: int = 3_600_000
    transaction_state_log_min_isr: int = 2
    transaction_state_log_num_partitions: int = 50
    transaction_state_log_replication_factor: int = 3
    transaction_state_log_segment_bytes: int = 104_857_600
    transaction_two_phase_commit_enable: bool = False
    transactional_id_expiration_ms: int = 604_800_000


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerConfig:
    """All areas of one broker at one moment; the dynamic ones are replaced as a whole when they change."""

    broker_id: int = -1
    reserved_broker_max_id: int = 1_000
    broker_rack: str | None = None
    zookeeper: ZooKeeperConfig = field(default_factory=ZooKeeperConfig)
    listeners: ListenersConfig = field(default_factory=ListenersConfig)
    connections: ConnectionsConfig = field(default_factory=ConnectionsConfig)
    quotas: QuotasConfig = field(default_factory=QuotasConfig)
    authorizer: AuthorizerConfig | None = None
    """None: everybody may do everything."""
    topics: TopicsConfig = field(default_factory=TopicsConfig)
    replication: ReplicationConfig = field(default_factory=ReplicationConfig)
    log_management: LogManagementConfig = field(default_factory=LogManagementConfig)
    log: LogConfig = field(default_factory=LogConfig)
    """The defaults of every topic, from the ``log.…`` settings."""
    controller: ControllerConfig = field(default_factory=ControllerConfig)
    shutdown: ShutdownConfig = field(default_factory=ShutdownConfig)
    groups: GroupConfig = field(default_factory=GroupConfig)
    transactions: TransactionsConfig = field(default_factory=TransactionsConfig)
    originals: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The file's text: DescribeConfigs shows it, and dynamic settings are applied over it."""
