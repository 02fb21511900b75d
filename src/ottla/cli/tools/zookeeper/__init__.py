"""``ottla zookeeper-shell``."""
