"""Settings as DescribeConfigs shows them: value, where it comes from, and what stands behind it."""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from itertools import dropwhile
from typing import TYPE_CHECKING

from ottla.config.broker_file import effective_values
from ottla.config.definitions import broker_settings, dynamic_only_settings, topic_settings, topic_synonyms
from ottla.config.setting import BadValue, ConfigType, Scope, Setting, Value, text_of
from ottla.config.topic_config import broker_default, parse_topic_override

if TYPE_CHECKING:
    from ottla.broker.node import Node


class ConfigSource(IntEnum):
    """The numbers of DescribeConfigs' answer."""

    UNKNOWN = 0
    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6


@dataclass(frozen=True, slots=True)
class Synonym:
    """One place where a value is set."""

    name: str
    value: str | None
    source: ConfigSource


@dataclass(frozen=True, slots=True)
class Entry:
    """One setting of one resource."""

    name: str
    value: str | None
    source: ConfigSource
    synonyms: tuple[Synonym, ...]
    type: ConfigType
    doc: str
    is_sensitive: bool
    is_read_only: bool


_LEVELS = {logging.WARNING: "WARN", logging.CRITICAL: "FATAL"}
_FAMILIES = (
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
)
_FAMILY_OF = {name: family for family in _FAMILIES for name in family} | {
    "log.flush.interval.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms")
}


def broker_entries(node: "Node", names: Iterable[str] | None) -> list[Entry]:
    """This broker's settings, as they hold now."""
    own, default = node.configs.broker_overrides()
    values = effective_values(node.config.originals, default, own)
    values["broker.id"] = values["node.id"] = node.broker_id
    settings = broker_settings()
    shown = dict(settings)
    for name, setting in dynamic_only_settings().items():
        if name in own or name in default:
            shown[name] = setting
    return [
        _broker_entry(node, setting, values[setting.name])
        for setting in shown.values()
        if names is None or setting.name in names
    ]


def default_broker_entries(node: "Node", names: Iterable[str] | None) -> list[Entry]:
    """What ZooKeeper sets for all brokers."""
    _, default = node.configs.broker_overrides()
    settings = broker_settings() | dynamic_only_settings()
    entries = []
    for name, text in default.items():
        if names is not None and name not in names:
            continue
        setting = settings.get(name) or Setting(name, ConfigType.STRING, None, "")
        value = None if setting.is_sensitive else text
        synonyms = (Synonym(name, value, ConfigSource.DYNAMIC_DEFAULT_BROKER),)
        source = ConfigSource.DYNAMIC_DEFAULT_BROKER
        entries.append(
            Entry(name, value, source, synonyms, setting.type, setting.doc, setting.is_sensitive, False)
        )
    return entries


def _with_node_id(originals: Mapping[str, str]) -> Mapping[str, str]:
    """``node.id`` is another name of ``broker.id``: who sets one sets both."""
    return {**originals, "node.id": originals["broker.id"]} if "broker.id" in originals else originals


def _broker_entry(node: "Node", setting: Setting, value: Value) -> Entry:
    synonyms = _synonyms(node, setting.name)
    return Entry(
        name=setting.name,
        value=None if setting.is_sensitive else text_of(value),
        source=synonyms[0].source if synonyms else ConfigSource.DEFAULT,
        synonyms=synonyms,
        type=setting.type,
        doc=setting.doc,
        is_sensitive=setting.is_sensitive,
        is_read_only=setting.scope is Scope.READ_ONLY,
    )


def _synonyms(node: "Node", name: str) -> tuple[Synonym, ...]:
    """Every place that sets it, the one that counts first, beginning with the name itself as Kafka does."""
    own, default = node.configs.broker_overrides()
    family = _FAMILY_OF.get(name, (name,))
    settings = broker_settings() | dynamic_only_settings()
    found: list[Synonym] = []
    layers: tuple[tuple[Mapping[str, str], ConfigSource], ...] = (
        (own, ConfigSource.DYNAMIC_BROKER),
        (default, ConfigSource.DYNAMIC_DEFAULT_BROKER),
        (_with_node_id(node.config.originals), ConfigSource.STATIC_BROKER),
    )
    for layer, source in layers:
        for each in family:
            if each in layer:
                found.append(Synonym(each, None if settings[each].is_sensitive else layer[each], source))
    for each in family:
        standard = settings[each].default
        if standard is not None:
            found.append(Synonym(each, text_of(standard), ConfigSource.DEFAULT))
    return tuple(dropwhile(lambda synonym: synonym.name != name, found))


def logger_entries(names: Iterable[str] | None) -> list[Entry]:
    """How loud each part of this process logs."""
    loggers = {name: logging.getLogger(name) for name in logging.root.manager.loggerDict}
    loggers["root"] = logging.root
    return [
        Entry(
            name=name,
            value=_LEVELS.get(logger.getEffectiveLevel(), logging.getLevelName(logger.getEffectiveLevel())),
            source=ConfigSource.DYNAMIC_BROKER_LOGGER,
            synonyms=(),
            type=ConfigType.STRING,
            doc="",
            is_sensitive=False,
            is_read_only=True,
        )
        for name, logger in sorted(loggers.items())
        if name.split(".")[0] in ("ottla", "root") and (names is None or name in names)
    ]


def topic_entries(node: "Node", topic: str, names: Iterable[str] | None) -> list[Entry]:
    """A topic's settings: its own, then those of the broker that stand behind them."""
    own, default = node.configs.broker_overrides()
    broker = effective_values(node.config.originals, default, own)
    overrides = node.configs.topic_overrides(topic)
    return [
        _topic_entry(node, setting, overrides, broker)
        for setting in topic_settings().values()
        if names is None or setting.name in names
    ]


def _topic_entry(
    node: "Node", setting: Setting, overrides: Mapping[str, str], broker: Mapping[str, Value]
) -> Entry:
    name = setting.name
    behind = topic_synonyms()[name]
    synonyms = _synonyms(node, behind[0]) if behind else ()
    value = broker_default(name, broker) if behind else setting.default
    if name in overrides:
        try:
            value = parse_topic_override(name, overrides[name])
        except BadValue:
            value = overrides[name]
        synonyms = (Synonym(name, text_of(value), ConfigSource.TOPIC), *synonyms)
    return Entry(
        name=name,
        value=text_of(value),
        source=synonyms[0].source if synonyms else ConfigSource.DEFAULT,
        synonyms=synonyms,
        type=setting.type,
        doc=setting.doc,
        is_sensitive=False,
        is_read_only=False,
    )
