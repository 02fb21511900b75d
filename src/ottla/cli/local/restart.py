"""``ottla restart``; see ``faults``."""

from ottla.cli.local.faults import restart_app as app

__all__ = ["app"]
