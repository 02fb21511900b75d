"""Processes on this machine: Java, the embedded ZooKeeper, whole clusters."""
