"""``ottla perf``."""
