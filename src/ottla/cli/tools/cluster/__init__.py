"""Commands about the cluster as a whole."""
