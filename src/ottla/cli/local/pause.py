"""``ottla pause``; see ``faults``."""

from ottla.cli.local.faults import pause_app as app

__all__ = ["app"]
