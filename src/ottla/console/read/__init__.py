"""What the console asks the cluster, and how often."""
