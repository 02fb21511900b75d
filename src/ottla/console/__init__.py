"""The web console: why the cluster is as it is, and what would happen if; a client over the wire."""
