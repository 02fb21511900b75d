"""A topic's settings: its own overrides over the broker's defaults, checked by Kafka's rules."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from ottla.config.definitions import topic_settings, topic_synonyms
from ottla.config.log import NEVER_MS, LogConfig
from ottla.config.setting import BadValue, Value

_TIERED = frozenset({"remote.log.copy.disable", "remote.log.delete.on.disable", "remote.storage.enable"})
_THROTTLED = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")


def check_topic_overrides(overrides: Mapping[str, str | None]) -> list[str]:
    """What is wrong with a topic's overrides, in words; empty when nothing is."""
    problems: list[str] = []
    for name, text in overrides.items():
        try:
            check_new_override(name, text)
        except BadValue as bad:
            problems.append(str(bad))
    return problems


def why_in_conflict(defaults: LogConfig, overrides: Mapping[str, str]) -> str | None:
    """What is wrong with valid overrides taken together, in Kafka's words; None when they agree."""
    config = with_overrides(defaults, overrides)
    low_ms, high_ms = config.min_compaction_lag_ms, config.max_compaction_lag_ms
    if low_ms <= high_ms:
        return None
    low, high = f"min.compaction.lag.ms ({low_ms})", f"max.compaction.lag.ms ({high_ms})"
    return f"conflict topic config setting {low} > {high}"


def check_new_override(name: str, text: str | None) -> None:
    """Check an override before it is stored: it must be valid, and Ottla must support it."""
    if parse_topic_override(name, text) and name in _TIERED:
        raise BadValue(f"Invalid value true for configuration {name}: Ottla has no tiered storage")


def parse_topic_override(name: str, text: str | None) -> Value:
    """One override's value; ``BadValue`` says what is wrong with it."""
    setting = topic_settings().get(name)
    if setting is None:
        raise BadValue(f"Unknown topic config name: {name}")
    if text is None:
        raise BadValue(f"Null value not supported for topic configs: {name}")
    try:
        value = setting.parse(text)
    except BadValue as bad:
        raise BadValue(f"Invalid value {text} for configuration {name}: {bad}") from None
    if name in _THROTTLED and not _names_replicas(value):
        raise BadValue(f"Invalid value {text} for configuration {name}: must be * or partition:broker,…")
    return value


def _names_replicas(value: Any) -> bool:
    if value in ((), ("*",), ("none",)):
        return True
    pairs = [member.split(":") for member in value]
    return all(len(pair) == 2 and all(part.isdigit() for part in pair) for pair in pairs)


def log_defaults(broker: Mapping[str, Value]) -> LogConfig:
    """Every topic's defaults, from the broker's settings (those set and the tables' own)."""
    values: dict[str, Value] = {}
    for name, setting in topic_settings().items():
        synonyms = topic_synonyms()[name]
        values[name] = broker_default(name, broker) if synonyms else setting.default
    return _log_config(values)


def broker_default(topic_setting: str, broker: Mapping[str, Value]) -> Value:
    """A topic setting's default from the broker's: ms count before minutes, minutes before hours."""
    for synonym in topic_synonyms()[topic_setting]:
        value = broker.get(synonym)
        if value is not None:
            return _in_milliseconds(synonym, value)
    return topic_settings()[topic_setting].default


def _in_milliseconds(name: str, value: Value) -> Value:
    if isinstance(value, int) and name.endswith(".hours"):
        return value * 3_600_000 if value >= 0 else -1
    if isinstance(value, int) and name.endswith(".minutes"):
        return value * 60_000 if value >= 0 else -1
    if isinstance(value, int) and name == "log.retention.ms" and value < 0:
        return -1
    return value


def unreadable_overrides(overrides: Mapping[str, str]) -> dict[str, str]:
    """The known settings whose values (written by others) do not parse, each with what is wrong with it."""
    problems: dict[str, str] = {}
    for name in overrides.keys() & topic_settings().keys():
        try:
            parse_topic_override(name, overrides[name])
        except BadValue as bad:
            problems[name] = str(bad)
    return problems


def with_overrides(defaults: LogConfig, overrides: Mapping[str, str]) -> LogConfig:
    """A topic's settings. Overrides that do not parse (written by others) are ignored."""
    values: dict[str, Value] = {}
    for name, text in overrides.items():
        try:
            values[name] = parse_topic_override(name, text)
        except BadValue:
            continue
    return _log_config(values, defaults)


def _log_config(values: Mapping[str, Value], defaults: LogConfig | None = None) -> LogConfig:
    before = {field.name: getattr(defaults, field.name) for field in fields(LogConfig)} if defaults else {}
    for field in fields(LogConfig):
        name = field.name.replace("_", ".")
        if name in values:
            before[field.name] = values[name]
    if "cleanup.policy" in values:
        before["cleanup_policy"] = frozenset(values["cleanup.policy"] or ())  # type: ignore[arg-type]
    _apply_old_difference(values, before)
    return LogConfig(**before)


def _apply_old_difference(values: Mapping[str, Value], fields_by_name: dict[str, Any]) -> None:
    """The deprecated setting applies where its two successors are not set."""
    difference = values.get("message.timestamp.difference.max.ms", NEVER_MS)
    if difference == NEVER_MS:
        return
    for side in ("before", "after"):
        if values.get(f"message.timestamp.{side}.max.ms", NEVER_MS) == NEVER_MS:
            fields_by_name[f"message_timestamp_{side}_max_ms"] = difference
