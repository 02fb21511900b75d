"""``ottla configs``."""
