"""A ZooKeeper server without its edge: what it changes, and how that is written down; pure."""
