"""``ottla users``, and users in ``ottla configs``."""
