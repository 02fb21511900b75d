"""The client's settings, by Kafka's names with ``_`` for ``.``, and with Kafka's defaults."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ottla.config.tls.settings import TlsSettings
from ottla.security.sasl.mechanisms import SaslLogin

if TYPE_CHECKING:
    from ottla.records.compression import Codec

INT32_MAX = 0x7FFF_FFFF


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientConfig:
    """What every client needs."""

    bootstrap_servers: tuple[tuple[str, int], ...]
    client_id: str = "ottla"
    request_timeout_ms: int = 30_000
    default_api_timeout_ms: int = 60_000
    metadata_max_age_ms: int = 300_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    reconnect_backoff_ms: int = 50
    reconnect_backoff_max_ms: int = 1_000
    socket_connection_setup_timeout_ms: int = 10_000
    allow_auto_create_topics: bool = True
    """Whether asking for a topic creates it, on brokers with ``auto.create.topics.enable``."""
    login: SaslLogin | None = None
    """As whom the client logs in; None where nobody asks (``security.protocol`` PLAINTEXT)."""
    tls: TlsSettings | None = None
    """How connections are encrypted; None where they are not."""
    response_bytes_max: int = 256 * 1024 * 1024
    """A larger response closes the connection. Kafka has no such setting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerConfig:
    """How records are batched and delivered."""

    acks: Literal[0, 1, -1] = -1
    enable_idempotence: bool = True
    """Has an effect only with ``acks`` -1, which it needs."""
    compression_type: Literal["none", "gzip", "snappy", "lz4", "zstd"] = "none"
    batch_size: int = 16_384
    linger_ms: int = 0
    max_request_size: int = 1_048_576
    buffer_memory: int = 33_554_432
    max_block_ms: int = 60_000
    max_in_flight_requests_per_connection: int = 5
    delivery_timeout_ms: int = 120_000
    retries: int = INT32_MAX
    transactional_id: str | None = None
    """Makes the producer transactional: it then needs ``acks`` -1 and idempotence."""
    transaction_timeout_ms: int = 60_000

    def __post_init__(self) -> None:
        if self.transactional_id is None:
            return
        if not self.transactional_id:
            raise ValueError("transactional_id is empty: name one, or leave it out")
        if not self.is_idempotent:
            raise ValueError("a transactional_id needs acks=-1 and enable_idempotence: leave them out")

    @property
    def codec(self) -> "Codec":
        from ottla.records.compression import CODEC_NAMES, Codec

        return CODEC_NAMES[self.compression_type] or Codec.NONE

    @property
    def is_idempotent(self) -> bool:
        return self.enable_idempotence and self.acks == -1


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerConfig:
    """How records are fetched."""

    fetch_min_bytes: int = 1
    fetch_max_bytes: int = 52_428_800
    fetch_max_wait_ms: int = 500
    max_partition_fetch_bytes: int = 1_048_576
    max_poll_records: int = 500
    isolation_level: Literal["read_uncommitted", "read_committed"] = "read_uncommitted"
    auto_offset_reset: Literal["earliest", "latest", "none"] = "latest"
    check_crcs: bool = True
    client_rack: str = ""

    @property
    def isolation_number(self) -> int:
        return 1 if self.isolation_level == "read_committed" else 0


def parse_bootstrap_servers(text: str) -> tuple[tuple[str, int], ...]:
    """``host:port,[::1]:port`` as pairs; anything else raises ``ValueError``."""
    servers = []
    for item in filter(None, (part.strip() for part in text.split(","))):
        host, separator, port = item.rpartition(":")
        host = host.removeprefix("[").removesuffix("]")
        if not separator or not host or not port.isdecimal() or not 0 < int(port) < 65_536:
            raise ValueError(f"{item!r} is not host:port")
        servers.append((host, int(port)))
    if not servers:
        raise ValueError("no bootstrap server is named")
    return tuple(servers)
