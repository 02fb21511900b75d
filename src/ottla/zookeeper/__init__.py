"""ZooKeeper without I/O: its protocol, a session machine, and Kafka's znodes."""
