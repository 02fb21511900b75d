"""The options that begin with ``kafka.``: the client gets what it knows, the rest is refused by name."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ottla.client.config import ClientConfig, ConsumerConfig, ProducerConfig, parse_bootstrap_servers
from ottla.spark.errors import refuse, refuse_name

PREFIX = "kafka."
BOOTSTRAP = "kafka.bootstrap.servers"

_NUMBERS = {
    ClientConfig: (
        "request.timeout.ms",
        "default.api.timeout.ms",
        "metadata.max.age.ms",
        "retry.backoff.ms",
        "retry.backoff.max.ms",
        "reconnect.backoff.ms",
        "reconnect.backoff.max.ms",
        "socket.connection.setup.timeout.ms",
    ),
    ConsumerConfig: ("fetch.max.bytes", "fetch.max.wait.ms", "fetch.min.bytes", "max.partition.fetch.bytes"),
    ProducerConfig: (
        "batch.size",
        "max.request.size",
        "buffer.memory",
        "max.block.ms",
        "delivery.timeout.ms",
        "retries",
        "transaction.timeout.ms",
    ),
}

_CHOICES: dict[str, dict[str, Any]] = {
    "isolation.level": {"read_uncommitted": "read_uncommitted", "read_committed": "read_committed"},
    "compression.type": {name: name for name in ("none", "gzip", "snappy", "lz4", "zstd")},
    "acks": {"all": -1, "-1": -1, "1": 1},
    "enable.idempotence": {"true": True, "false": False},
    "check.crcs": {"true": True, "false": False},
    "security.protocol": {"PLAINTEXT": "PLAINTEXT"},
}

_FORBIDDEN = {
    "auto.offset.reset": "say where to begin with startingOffsets",
    "enable.auto.commit": "Spark's checkpoint keeps the offsets; offsetCommitGroup shows them to a group",
    "key.deserializer": "keys are read as binary; decode them with DataFrame operations",
    "value.deserializer": "values are read as binary; decode them with DataFrame operations",
    "key.serializer": "keys are written as binary or string; encode them with DataFrame operations",
    "value.serializer": "values are written as binary or string; encode them with DataFrame operations",
    "interceptor.classes": "change records with DataFrame operations",
    "transactional.id": "every task has one of its own: say transactionalIdPrefix",
}

_READ_ONLY = ("isolation.level", "check.crcs", "client.rack", "group.id", *_NUMBERS[ConsumerConfig])
_WRITE_ONLY = ("compression.type", "acks", "enable.idempotence", *_NUMBERS[ProducerConfig])
_BOTH = ("bootstrap.servers", "client.id", "security.protocol", *_NUMBERS[ClientConfig])

FETCH_BYTES = 16 * 1024 * 1024
"""More than Kafka's 1 MiB: a task reads one range as fast as it can, and what Spark does for each piece costs
more than its bytes."""
BATCH_BYTES = 512 * 1024


@dataclass(frozen=True, slots=True)
class KafkaSettings:
    """What the options say about the connection; goes to every task."""

    client: ClientConfig
    consumer: ConsumerConfig
    producer: ProducerConfig
    group_id: str | None = None


def kafka_settings(options: Mapping[str, str], *, is_sink: bool) -> KafkaSettings:
    """Read every ``kafka.`` option, or refuse it."""
    given = {
        name.lower().removeprefix(PREFIX): value
        for name, value in options.items()
        if name.lower().startswith(PREFIX)
    }
    if "bootstrap.servers" not in given:
        raise refuse(BOOTSTRAP, "", "it is missing", "name the cluster: .option(..., 'localhost:9092')")
    for name in given:
        _check_name(name, is_sink)
    fields = {name.replace(".", "_"): _value(name, value) for name, value in given.items()}
    try:
        servers = parse_bootstrap_servers(given["bootstrap.servers"])
    except ValueError as wrong:
        raise refuse(BOOTSTRAP, given["bootstrap.servers"], str(wrong), "write host:port,host:port") from None
    numbers = {kind: {n.replace(".", "_") for n in names} for kind, names in _NUMBERS.items()}
    client = {name: fields[name] for name in fields if name in numbers[ClientConfig] or name == "client_id"}
    consumer_names = numbers[ConsumerConfig] | {"isolation_level", "check_crcs", "client_rack"}
    consumer = {"max_partition_fetch_bytes": FETCH_BYTES} | {
        name: fields[name] for name in fields if name in consumer_names
    }
    producer_names = numbers[ProducerConfig] | {"compression_type", "acks", "enable_idempotence"}
    producer = {"batch_size": BATCH_BYTES} | {name: fields[name] for name in fields if name in producer_names}
    return KafkaSettings(
        # A read that asks for a topic again, while it is being deleted, must not bring it back.
        ClientConfig(bootstrap_servers=servers, allow_auto_create_topics=is_sink, **client),
        ConsumerConfig(**consumer),
        ProducerConfig(**producer),
        given.get("group.id"),
    )


def _check_name(name: str, is_sink: bool) -> None:
    if name in _FORBIDDEN:
        why = "it is not supported here, as in Spark's own connector"
        raise refuse_name(PREFIX + name, why, _FORBIDDEN[name])
    if name in _BOTH or name in (_WRITE_ONLY if is_sink else _READ_ONLY):
        return
    if name in _WRITE_ONLY or name in _READ_ONLY:
        other, this = ("source", "sink") if is_sink else ("sink", "source")
        raise refuse_name(PREFIX + name, f"it is a setting of the {other}, and this is a {this}", "remove it")
    known = sorted({*_BOTH, *(_WRITE_ONLY if is_sink else _READ_ONLY)})
    raise refuse_name(PREFIX + name, "Ottla's client does not know it", f"it knows {', '.join(known)}")


def _value(name: str, value: str) -> Any:
    if name in _CHOICES:
        choices = _CHOICES[name]
        key = value if name == "security.protocol" else value.lower()
        if key not in choices:
            raise refuse(PREFIX + name, value, "there is no such value", f"choose from {', '.join(choices)}")
        return choices[key]
    if any(name in names for names in _NUMBERS.values()):
        if not value.strip().isdecimal():
            raise refuse(PREFIX + name, value, "it is no whole number", "give digits only")
        return int(value)
    return value
