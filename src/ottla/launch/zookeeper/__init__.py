"""The ZooKeeper of a cluster on this machine: the built-in keeper, Apache's, or one that runs elsewhere."""
