"""``ottla resume``; see ``faults``."""

from ottla.cli.local.faults import resume_app as app

__all__ = ["app"]
