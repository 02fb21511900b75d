"""Whom each listener of a broker lets in, from the broker's settings."""

from collections.abc import Mapping
from typing import NamedTuple


class Listener(NamedTuple):
    """A name, what is spoken there, and whether anybody may come in or listen in."""

    name: str
    protocol: str
    asks: str
    """How clients say who they are."""
    is_open: bool
    """Nobody is asked."""
    is_readable: bool
    """What is said there is not encrypted."""


def listeners(settings: Mapping[str, str]) -> list[Listener]:
    """Of ``listeners`` and ``listener.security.protocol.map``, as DescribeConfigs shows them."""
    protocols = dict(
        pair.strip().rpartition(":")[::2]
        for pair in settings.get("listener.security.protocol.map", "").split(",")
        if ":" in pair
    )
    found = []
    for address in settings.get("listeners", "").split(","):
        name, separator, _ = address.strip().partition("://")
        if separator:
            found.append(_listener(name, protocols.get(name, name).upper(), settings))
    return found


def _listener(name: str, protocol: str, settings: Mapping[str, str]) -> Listener:
    def said(key: str) -> str:
        return settings.get(f"listener.name.{name.lower()}.{key}") or settings.get(key, "")

    is_readable = not protocol.endswith("SSL")
    if protocol.startswith("SASL"):
        return Listener(name, protocol, said("sasl.enabled.mechanisms"), False, is_readable)
    if protocol == "SSL" and said("ssl.client.auth") == "required":
        return Listener(name, protocol, "certificate", False, is_readable)
    return Listener(name, protocol, "nothing", True, is_readable)
