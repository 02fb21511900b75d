"""``ottla dump-log``."""
