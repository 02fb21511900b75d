"""``ottla kill``; see ``faults``."""

from ottla.cli.local.faults import kill_app as app

__all__ = ["app"]
