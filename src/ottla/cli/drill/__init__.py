"""``ottla drill``."""
