"""Client quotas: as ZooKeeper has them, and enforced."""
