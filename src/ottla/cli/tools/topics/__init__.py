"""``ottla topics``."""
