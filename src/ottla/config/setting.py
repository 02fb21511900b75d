"""What a setting is: Kafka's name, type, default, limits, meaning, and how it may change at run time."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Any, TypeAlias

Value: TypeAlias = bool | int | float | str | tuple[str, ...] | None


class ConfigType(IntEnum):
    """The numbers of DescribeConfigs' answer."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class Scope(Enum):
    """Where a broker's setting may be changed while it runs."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


class Standing(Enum):
    """How Ottla treats one of Kafka's settings."""

    OBEYED = "obeyed"
    WITHOUT_EFFECT = "without effect"
    """It tunes a part that Ottla does not have (thread pools, KRaft, tiered storage while it is off)."""
    UNSUPPORTED = "unsupported"
    """Ottla does not do what it asks for: a broker with another value than the default does not start."""


class BadValue(ValueError):
    """A value that its setting does not allow; the text says why."""


Check: TypeAlias = Callable[[Any], str | None]
"""Gives the words for what is wrong with a parsed value, or None."""

_INTEGER_LIMITS = {
    ConfigType.INT: (-(2**31), 2**31 - 1),
    ConfigType.SHORT: (-(2**15), 2**15 - 1),
    ConfigType.LONG: (-(2**63), 2**63 - 1),
}


@dataclass(frozen=True, slots=True)
class Setting:
    """One line of the tables."""

    name: str
    type: ConfigType
    default: Value
    doc: str
    check: Check | None = None
    scope: Scope = Scope.READ_ONLY
    standing: Standing = Standing.OBEYED
    limits: str = ""
    """What ``check`` allows, as the tables write it."""

    @property
    def is_sensitive(self) -> bool:
        return self.type is ConfigType.PASSWORD

    def parse(self, text: str) -> Value:
        """Parse a text; ``BadValue`` when it does not parse or is out of limits."""
        value = _parse(self.type, text)
        wrong = self.check(value) if self.check is not None else None
        if wrong is not None:
            raise BadValue(wrong)
        return value


def _parse(kind: ConfigType, text: str) -> Value:
    text = text.strip()
    match kind:
        case ConfigType.BOOLEAN:
            if text.lower() not in ("true", "false"):
                raise BadValue("Expected value to be either true or false")
            return text.lower() == "true"
        case ConfigType.INT | ConfigType.SHORT | ConfigType.LONG:
            return _parse_integer(kind, text)
        case ConfigType.DOUBLE:
            try:
                return float(text)
            except ValueError:
                raise BadValue("Not a number of type DOUBLE") from None
        case ConfigType.LIST:
            return tuple(part.strip() for part in text.split(",")) if text else ()
        case _:
            return text


def _parse_integer(kind: ConfigType, text: str) -> int:
    try:
        value = int(text) if "_" not in text else None
    except ValueError:
        value = None
    if value is None:
        raise BadValue(f"Not a number of type {kind.name}")
    low, high = _INTEGER_LIMITS[kind]
    if not low <= value <= high:
        raise BadValue(f"Not a number of type {kind.name}")
    return value


def text_of(value: Value) -> str | None:
    """The text form that DescribeConfigs shows."""
    match value:
        case None:
            return None
        case bool():
            return "true" if value else "false"
        case tuple():
            return ",".join(value)
        case float():
            return _double_text(value)
        case _:
            return str(value)


def _double_text(value: float) -> str:
    """Java's way to write a double."""
    return repr(value).replace("e+", "E").replace("e-", "E-").replace("e", "E")


def at_least(low: float) -> Check:
    """At least this."""

    def check(value: Any) -> str | None:
        return None if value is None or value >= low else f"Value must be at least {low}"

    return check


def between(low: float, high: float) -> Check:
    """Within these limits, both included."""

    def check(value: Any) -> str | None:
        if value < low:
            return f"Value must be at least {low}"
        return None if value <= high else f"Value must be no more than {high}"

    return check


def one_of(*allowed: str) -> Check:
    """Exactly one of these; for a list, every member."""

    def check(value: Any) -> str | None:
        members = value if isinstance(value, tuple) else (value,)
        bad = [member for member in members if member not in allowed]
        return f"String must be one of: {', '.join(allowed)}" if bad else None

    return check
