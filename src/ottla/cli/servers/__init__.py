"""Commands that run one server: a broker, a ZooKeeper."""
