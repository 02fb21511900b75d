"""A consumer's settings by Kafka's names, sorted by who honours them."""

from dataclasses import fields, replace
from typing import Any, TypeVar

from ottla.cli.shared.connection import CLIENT_SETTINGS
from ottla.cli.shared.refusal import CommandRefused
from ottla.client.config import ConsumerConfig
from ottla.client.group.config import MembershipConfig

_OURS = frozenset({"group.id", "key.deserializer", "value.deserializer"})
"""The command itself looks at the group; how bytes are shown is a matter of printing, as in Kafka."""
_CHOICES = {
    "auto.offset.reset": ("earliest", "latest", "none"),
    "isolation.level": ("read_committed", "read_uncommitted"),
}
_STRATEGIES = {
    "RangeAssignor": "range",
    "RoundRobinAssignor": "roundrobin",
    "StickyAssignor": "sticky",
    "CooperativeStickyAssignor": "cooperative-sticky",
}

Config = TypeVar("Config", ConsumerConfig, MembershipConfig)


def consumer_settings(
    settings: dict[str, str],
) -> tuple[ConsumerConfig, MembershipConfig, dict[str, str]]:
    """Those of the consumer, of a member, and of the connection; one that nobody knows is refused by name."""
    config, membership = ConsumerConfig(), MembershipConfig()
    reading = {field.name for field in fields(ConsumerConfig)}
    joining = {field.name for field in fields(MembershipConfig)}
    for name, text in settings.items():
        attribute = name.replace(".", "_")
        if attribute in reading:
            config = _changed(config, attribute, name, text)
        elif attribute in joining:
            membership = _changed(membership, attribute, name, text)
        elif name not in CLIENT_SETTINGS and name not in _OURS:
            ours = {known.replace("_", ".") for known in reading | joining}
            raise CommandRefused(
                f"the consumer's setting {name} is not supported; those that are:"
                f" {', '.join(sorted(ours | CLIENT_SETTINGS | _OURS))}"
            )
    return config, membership, {name: text for name, text in settings.items() if name in CLIENT_SETTINGS}


def _changed(config: Config, attribute: str, name: str, text: str) -> Config:
    before = getattr(config, attribute)
    value: Any = int(text) if text.isdecimal() else text
    if isinstance(before, bool):
        value = {"true": True, "false": False}.get(text, text)
    elif isinstance(before, tuple):
        value = _strategies(name, text)
    is_odd = value not in _CHOICES.get(name, (value,))
    if is_odd or (before is not None and type(value) is not type(before)):
        allowed = " or ".join(
            _CHOICES.get(name, ("true", "false") if isinstance(before, bool) else ("a number",))
        )
        raise CommandRefused(f"{name}={text} makes no sense; write {allowed}")
    return replace(config, **{attribute: value})


def _strategies(name: str, text: str) -> tuple[str, ...]:
    """Assignors by their class names, or by the names that they have in the protocol."""
    chosen = []
    for item in (part.strip() for part in text.split(",")):
        known = _STRATEGIES.get(item.rpartition(".")[2], item)
        if known not in _STRATEGIES.values():
            raise CommandRefused(f"{name}={text}: {item} is not known; there are {', '.join(_STRATEGIES)}")
        chosen.append(known)
    return tuple(chosen)
