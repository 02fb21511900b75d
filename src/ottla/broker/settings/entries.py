"""Settings as DescribeConfigs shows them: value, where it comes from, and what stands behind it."""

from collections.abc import Collection, Mapping, Sequence
from enum import IntEnum
from functools import cache
from itertools import dropwhile
from typing import TypeAlias

from ottla.broker.settings.dynamic import DynamicConfigs
from ottla.config.definitions import (
    all_broker_settings,
    broker_setting,
    broker_settings,
    name_without_listener,
    topic_settings,
    topic_synonyms,
)
from ottla.config.setting import BadValue, ConfigType, Scope, Setting, text_of
from ottla.config.topic_config import broker_default, parse_topic_override
from ottla.model.ids import BrokerId
from ottla.wire.apis.describe_configs import DescribeConfigsResourceResult, DescribeConfigsSynonym

Row: TypeAlias = DescribeConfigsResourceResult
Synonym: TypeAlias = DescribeConfigsSynonym


class ConfigSource(IntEnum):
    """The numbers of DescribeConfigs' answer."""

    UNKNOWN = 0
    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6


_FAMILIES = (
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
)
_FAMILY_OF = {name: family for family in _FAMILIES for name in family} | {
    "log.flush.interval.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms")
}


class ConfigRows:
    """The rows of one answer. What many of them share is made once, and topics share almost everything."""

    def __init__(
        self,
        configs: DynamicConfigs,
        broker_id: BrokerId,
        *,
        with_synonyms: bool = False,
        with_documentation: bool = False,
    ) -> None:
        self._broker_id = broker_id
        self._with_synonyms = with_synonyms
        self._with_documentation = with_documentation
        own, self._default = configs.broker_overrides()
        file = _with_node_id(configs.static.originals)
        self._layers = (
            (own, ConfigSource.DYNAMIC_BROKER),
            (self._default, ConfigSource.DYNAMIC_DEFAULT_BROKER),
            (file, ConfigSource.STATIC_BROKER),
        )
        self._told = {**file, **self._default, **own}
        self._values = configs.values
        self._of_every_topic: dict[str, Row] = {}

    def of_broker(self, names: Collection[str] | None) -> list[Row]:
        """This broker's settings, as they hold now, and whatever else its file and ZooKeeper hold."""
        shown = [*broker_settings(), *sorted(self._told.keys() - broker_settings().keys())]
        return [self._of_broker(name) for name in shown if names is None or name in names]

    def _of_broker(self, name: str) -> Row:
        if name in ("broker.id", "node.id"):
            return self._broker_row(name, str(self._broker_id), self._synonyms(name))
        if self._told.keys().isdisjoint(_family(name)):
            return _untouched_row(name, self._with_synonyms, self._with_documentation)
        value = self._values[name] if name in self._values else self._told[name]
        return self._broker_row(name, text_of(value), self._synonyms(name))

    def of_all_brokers(self, names: Collection[str] | None) -> list[Row]:
        """What ZooKeeper sets for all brokers."""
        rows = []
        for name, text in self._default.items():
            if names is None or name in names:
                value = None if _is_secret(broker_setting(name)) else text
                source = int(ConfigSource.DYNAMIC_DEFAULT_BROKER)
                rows.append(self._broker_row(name, text, (Synonym(name, value, source),)))
        return rows

    def _broker_row(self, name: str, text: str | None, synonyms: Sequence[Synonym]) -> Row:
        return _broker_row(name, text, synonyms, self._with_synonyms, self._with_documentation)

    def _synonyms(self, name: str) -> Sequence[Synonym]:
        """Every place that sets it, the one that counts first; from the name itself on, as Kafka does."""
        family = _family(name)
        if self._told.keys().isdisjoint(family):
            return _untouched_synonyms(name)
        is_secret = _is_secret(broker_setting(name))
        found = [
            Synonym(each, None if is_secret else layer[each], int(source))
            for layer, source in self._layers
            for each in family
            if each in layer
        ]
        return tuple(dropwhile(lambda synonym: synonym.name != name, (*found, *_standard_synonyms(name))))

    def of_topic(self, overrides: Mapping[str, str], names: Collection[str] | None = None) -> list[Row]:
        """A topic's settings: its own, then those of the broker that stand behind them."""
        shown = [*topic_settings(), *sorted(overrides.keys() - topic_settings().keys())]
        return [
            self._own_row(name, overrides[name]) if name in overrides else self._inherited_row(name)
            for name in shown
            if names is None or name in names
        ]

    def _inherited_row(self, name: str) -> Row:
        row = self._of_every_topic.get(name)
        if row is None:
            behind = topic_synonyms()[name]
            value = broker_default(name, self._values) if behind else topic_settings()[name].default
            row = self._topic_row(name, text_of(value), self._behind(name))
            self._of_every_topic[name] = row
        return row

    def _own_row(self, name: str, text: str) -> Row:
        """Nobody knows what an unknown name holds: it is shown without its value."""
        shown: str | None = None
        if name in topic_settings():
            try:
                shown = text_of(parse_topic_override(name, text))
            except BadValue:
                shown = text
        own = Synonym(name, shown, int(ConfigSource.TOPIC))
        return self._topic_row(name, shown, (own, *self._behind(name)))

    def _behind(self, name: str) -> Sequence[Synonym]:
        behind = topic_synonyms().get(name, ())
        return self._synonyms(behind[0]) if behind else ()

    def _topic_row(self, name: str, value: str | None, synonyms: Sequence[Synonym]) -> Row:
        setting = topic_settings().get(name)
        return Row(
            name=name,
            value=value,
            config_source=synonyms[0].source if synonyms else int(ConfigSource.DEFAULT),
            is_sensitive=_is_secret(setting),
            synonyms=list(synonyms) if self._with_synonyms else [],
            config_type=_type(setting),
            documentation=setting.doc if setting is not None and self._with_documentation else None,
        )


@cache
def _untouched_row(name: str, with_synonyms: bool, with_documentation: bool) -> Row:
    """A setting that nobody has set: the same in every answer."""
    value = text_of(broker_settings()[name].default)
    return _broker_row(name, value, _untouched_synonyms(name), with_synonyms, with_documentation)


def _broker_row(
    name: str, text: str | None, synonyms: Sequence[Synonym], with_synonyms: bool, with_documentation: bool
) -> Row:
    """A name that nobody knows may be a password's: it is shown without its value."""
    setting = broker_setting(name)
    of_broker = broker_settings().get(name)
    return Row(
        name=name,
        value=None if _is_secret(setting) else text,
        read_only=of_broker is None or of_broker.scope is Scope.READ_ONLY,
        config_source=synonyms[0].source if synonyms else int(ConfigSource.DEFAULT),
        is_sensitive=_is_secret(setting),
        synonyms=list(synonyms) if with_synonyms else [],
        config_type=_type(setting),
        documentation=setting.doc if setting is not None and with_documentation else None,
    )


@cache
def _untouched_synonyms(name: str) -> tuple[Synonym, ...]:
    return tuple(dropwhile(lambda synonym: synonym.name != name, _standard_synonyms(name)))


def _standard_synonyms(name: str) -> tuple[Synonym, ...]:
    """The defaults of a setting and of those that stand in for it."""
    is_secret = _is_secret(broker_setting(name))
    settings = [all_broker_settings().get(each) for each in _family(name)]
    return tuple(
        Synonym(setting.name, None if is_secret else text_of(setting.default), int(ConfigSource.DEFAULT))
        for setting in settings
        if setting is not None and setting.default is not None
    )


def _family(name: str) -> tuple[str, ...]:
    """The names under which a setting may be set, the one that counts first."""
    family = _FAMILY_OF.get(name)
    if family is not None:
        return family
    of_listener = name_without_listener(name)
    return (name,) if of_listener is None else (name, of_listener)


def _type(setting: Setting | None) -> int:
    return setting.type if setting is not None else ConfigType.UNKNOWN


def _is_secret(setting: Setting | None) -> bool:
    return setting is None or setting.is_sensitive


def _with_node_id(originals: Mapping[str, str]) -> Mapping[str, str]:
    """``node.id`` is another name of ``broker.id``: who sets one sets both."""
    return {**originals, "node.id": originals["broker.id"]} if "broker.id" in originals else originals
