"""Kafka's znodes of settings, notifications, producer ids and features, to and from values."""

from dataclasses import dataclass, field
from typing import Any

import msgspec

from ottla.model.ids import BrokerId
from ottla.znodes.codec import MalformedZnode, read_json, read_object, without_keys, write_json

# ---- /config/<kind>/<entity> and its notifications ----------------------------------------------


@dataclass(frozen=True, slots=True)
class ConfigNode:
    """The overrides of one entity."""

    config: dict[str, str]
    other: dict[str, Any] = field(default_factory=dict)


def encode_config(node: ConfigNode) -> bytes:
    """Version 1; all values are text."""
    return write_json({"version": 1, "config": node.config, **node.other})


def decode_config(data: bytes | None) -> ConfigNode:
    """A node without data has no overrides, as Kafka reads it."""
    if data is None or not data:
        return ConfigNode({})
    fields = read_object(data, "config")
    config = fields.get("config", {})
    if not isinstance(config, dict) or not all(isinstance(value, str) for value in config.values()):
        raise MalformedZnode("config: the overrides are not a map of text to text")
    return ConfigNode(config, without_keys(fields, frozenset({"version", "config"})))


def encode_config_change(entity_path: str) -> bytes:
    """A notification of version 2: ``topics/orders``, ``users/<u>/clients/<c>``."""
    return write_json({"version": 2, "entity_path": entity_path})


class _ConfigChange(msgspec.Struct):
    version: int
    entity_path: str | None = None
    entity_type: str | None = None
    entity_name: str | None = None


def decode_config_change(data: bytes | None) -> str:
    """The entity's path under ``/config``, from a notification of version 1 or 2."""
    node = read_json(data, _ConfigChange, "config change")
    if node.version == 2 and node.entity_path:
        return node.entity_path
    if node.version == 1 and node.entity_type in ("topics", "clients") and node.entity_name is not None:
        return f"{node.entity_type}/{node.entity_name}"
    raise MalformedZnode(f"config change: version {node.version} names no entity")


# ---- /log_dir_event_notification, /latest_producer_id_block, /feature ---------------------------


class _LogDirEvent(msgspec.Struct):
    broker: int


def encode_log_dir_event(broker: BrokerId) -> bytes:
    """A log directory of this broker failed; the only event there is."""
    return write_json({"version": 1, "broker": broker, "event": 1})


def decode_log_dir_event(data: bytes | None) -> BrokerId:
    """Whose log directory failed."""
    return BrokerId(read_json(data, _LogDirEvent, "log dir event").broker)


@dataclass(frozen=True, slots=True)
class ProducerIdBlock:
    """The producer ids from ``first`` to ``last``, both inclusive, given to one broker."""

    broker: BrokerId
    first: int
    last: int


class _ProducerIdBlock(msgspec.Struct):
    broker: int
    block_start: str | int
    block_end: str | int


def encode_producer_id_block(block: ProducerIdBlock) -> bytes:
    """Kafka writes the ids as text."""
    return write_json(
        {
            "version": 1,
            "broker": block.broker,
            "block_start": str(block.first),
            "block_end": str(block.last),
        }
    )


def decode_producer_id_block(data: bytes | None) -> ProducerIdBlock | None:
    """The latest block; ``None`` while none was ever given."""
    if data is None or not data:
        return None
    node = read_json(data, _ProducerIdBlock, "producer id block")
    try:
        return ProducerIdBlock(BrokerId(node.broker), int(node.block_start), int(node.block_end))
    except ValueError as error:
        raise MalformedZnode(f"producer id block: {error}") from None


@dataclass(frozen=True, slots=True)
class FeatureNode:
    """The finalized features: in ZooKeeper mode of Kafka 3.9 there are none."""

    version: int = 2
    is_enabled: bool = True
    features: dict[str, int] = field(default_factory=dict)
    other: dict[str, Any] = field(default_factory=dict)


def encode_feature(node: FeatureNode) -> bytes:
    """Version 2, the one that inter-broker protocol 3.9 writes."""
    features = {name: {"max_version_level": level} for name, level in node.features.items()}
    status = 1 if node.is_enabled else 0
    return write_json({"features": features, "version": node.version, "status": status, **node.other})


class _FeatureLevel(msgspec.Struct):
    max_version_level: int


class _Feature(msgspec.Struct):
    version: int
    status: int
    features: dict[str, _FeatureLevel] = {}


def decode_feature(data: bytes | None) -> FeatureNode:
    """A feature node of version 1 or 2."""
    fields = read_object(data, "feature")
    try:
        node = msgspec.convert(fields, _Feature)
    except msgspec.ValidationError as error:
        raise MalformedZnode(f"feature: {error}") from None
    if node.status not in (0, 1):
        raise MalformedZnode(f"feature: {node.status} is not a status")
    levels = {name: level.max_version_level for name, level in node.features.items()}
    other = without_keys(fields, frozenset({"version", "status", "features"}))
    return FeatureNode(node.version, node.status == 1, levels, other)
