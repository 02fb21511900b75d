"""What this broker knows of the cluster, and tells its clients."""
