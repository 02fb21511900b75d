"""``ottla consumer-groups``."""
