"""The keeper's data directory: ZooKeeper's own log and snapshots, written, recovered and thinned out."""
