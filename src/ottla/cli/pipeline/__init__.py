"""``ottla pipeline``."""
