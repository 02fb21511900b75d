"""New topics: how they are written to ZooKeeper, and those that a broker creates by itself."""
