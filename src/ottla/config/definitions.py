"""The tables, read: every broker setting and every topic setting by name."""

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

from ottla.config.areas import parse_connection_overrides
from ottla.config.kafka_versions import why_no_version
from ottla.config.setting import Check, ConfigType, Scope, Setting, Standing, Value, at_least, between, one_of
from ottla.config.tables import (
    cluster,
    coordinators,
    log,
    network,
    replication,
    topic,
    unsupported,
    without_effect,
)

_NO_EFFECT_DOC = "Accepted so that Kafka's files can be used as they are; it has no effect in Ottla."
_UNSUPPORTED_DOC = "Ottla does not support this: only the default is accepted."
_OF_A_LISTENER = re.compile(r"listener\.name\.[^.]*\.(.*)")
_OF_A_MECHANISM = (
    "connections.max.reauth.ms",
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
)
"""Settings with the name of a mechanism between the listener's and their own."""
_RANGE = re.compile(r"(-?[\d.]+)\.\.(-?[\d.]+)")

DYNAMIC_ONLY_TABLE = """
leader.replication.throttled.rate long 9223372036854775807 >=0 per-broker
    How many bytes a second this broker sends to throttled followers.
follower.replication.throttled.rate long 9223372036854775807 >=0 per-broker
    How many bytes a second this broker fetches for throttled replicas.
replica.alter.log.dirs.io.max.bytes.per.second long 9223372036854775807 >=0 per-broker
    How many bytes a second this broker copies from one of its log directories to another.
"""


@cache
def broker_settings() -> dict[str, Setting]:
    """Everything that may stand in ``server.properties``, sorted by name."""
    settings: dict[str, Setting] = {}
    for part in (network, cluster, replication, log, coordinators):
        settings.update((setting.name, setting) for setting, _ in _read(part.TABLE, Standing.OBEYED))
    settings.update((setting.name, setting) for setting, _ in _read(unsupported.TABLE, Standing.UNSUPPORTED))
    settings.update(
        (setting.name, setting) for setting, _ in _read(without_effect.TABLE, Standing.WITHOUT_EFFECT)
    )
    return dict(sorted(settings.items()))


@cache
def dynamic_only_settings() -> dict[str, Setting]:
    """What a broker can be told through ZooKeeper alone: the rates of the replication throttle."""
    return {setting.name: setting for setting, _ in _read(DYNAMIC_ONLY_TABLE, Standing.OBEYED)}


@cache
def all_broker_settings() -> dict[str, Setting]:
    """Everything that a broker may be told, by its file or through ZooKeeper."""
    return broker_settings() | dynamic_only_settings()


def name_without_listener(name: str) -> str | None:
    """The setting in ``listener.name.<listener>.<setting>``; None where a name is not of that kind."""
    found = _OF_A_LISTENER.fullmatch(name)
    if found is None:
        return None
    return next((each for each in _OF_A_MECHANISM if found[1].endswith(each)), found[1])


def broker_setting(name: str) -> Setting | None:
    """What the tables say of a broker's setting, also of one for a single listener."""
    return all_broker_settings().get(name) or all_broker_settings().get(name_without_listener(name) or "")


@cache
def _passwords() -> tuple[str, ...]:
    settings = all_broker_settings().values()
    return tuple(setting.name for setting in settings if setting.is_sensitive)


def is_password(name: str) -> bool:
    """Whether a setting is a password, also one of a single listener or mechanism."""
    return name.endswith(_passwords())


@cache
def topic_settings() -> dict[str, Setting]:
    """Everything that a topic may set for itself, sorted by name."""
    return {setting.name: setting for setting, _ in _read(topic.TABLE, Standing.OBEYED)}


@cache
def topic_synonyms() -> dict[str, tuple[str, ...]]:
    """The broker settings that give a topic's setting its default; the first that is set counts."""
    return {setting.name: synonyms for setting, synonyms in _read(topic.TABLE, Standing.OBEYED)}


def _read(table: str, standing: Standing) -> Iterator[tuple[Setting, tuple[str, ...]]]:
    lines = [line for line in table.split("\n") if line.strip()]
    for number, line in enumerate(lines):
        if line.startswith(" "):
            continue
        below = lines[number + 1] if number + 1 < len(lines) else ""
        doc = below.strip() if below.startswith(" ") else ""
        yield _read_line(line, doc, standing)


def _read_line(line: str, doc: str, standing: Standing) -> tuple[Setting, tuple[str, ...]]:
    name, kind, default, *rest = line.split()
    config_type = ConfigType[kind.upper()]
    check: Check | None = None
    limits = ""
    scope = Scope.READ_ONLY
    synonyms: tuple[str, ...] = ()
    for word in rest:
        if word.startswith("<"):
            synonyms = tuple(word[1:].split(","))
        elif word == "no-effect":
            standing = Standing.WITHOUT_EFFECT
            doc += " It has no effect in Ottla."
        elif word == "unsupported":
            standing = Standing.UNSUPPORTED
        elif word in ("per-broker", "cluster-wide"):
            scope = Scope(word)
        else:
            limits, check = word, _check_of(word)
    if not doc:
        doc = _UNSUPPORTED_DOC if standing is Standing.UNSUPPORTED else _NO_EFFECT_DOC
    setting = Setting(name, config_type, None, doc, check, scope, standing, limits)
    return replace(setting, default=_default_of(setting, default)), synonyms


def _check_of(word: str) -> Check:
    if word == "host:count":
        return _why_no_counts
    if word == "version":
        return why_no_version
    if word.startswith(">="):
        return at_least(float(word[2:]) if "." in word else int(word[2:]))
    if word.startswith("{"):
        return one_of(*word[1:-1].split(","))
    if word.startswith("-1|"):
        return _or_minus_one(_check_of(word[3:]))
    limits = _RANGE.fullmatch(word)
    assert limits is not None, f"{word!r} is no limit"
    low, high = (float(limit) if "." in limit else int(limit) for limit in limits.groups())
    return between(low, high)


def _or_minus_one(check: Check) -> Check:
    def either(value: Any) -> str | None:
        why = None if value == -1 else check(value)
        return f"{why}, or equal to -1" if why is not None else None

    return either


def _why_no_counts(value: Any) -> str | None:
    try:
        parse_connection_overrides(value)
    except ValueError:
        return "write host:count, separated by commas"
    return None


def _default_of(setting: Setting, text: str) -> Value:
    if text == "null":
        return None
    return setting.parse("" if text == '""' else text)
