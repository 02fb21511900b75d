"""Pictures of the cluster: all of it on one screen, and why one partition is led by whom."""
