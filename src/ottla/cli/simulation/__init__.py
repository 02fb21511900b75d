"""``ottla sim``."""
