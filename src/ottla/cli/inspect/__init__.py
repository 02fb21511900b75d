"""Commands that show a cluster: on one screen, live, and why a partition is led by whom."""
