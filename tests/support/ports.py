"""Free TCP ports for processes that must be told theirs, and keep it over a restart."""

from __future__ import annotations

from ottla.launch.ports import free_ports


def free_port() -> int:
    """A port of the loopback address that nobody listens on."""
    return free_ports(1)[0]
