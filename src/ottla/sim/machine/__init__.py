"""The simulated machine: brokers, disks, network, ZooKeeper."""
