"""Processes on this machine: Java, the embedded ZooKeeper, and later whole clusters."""
