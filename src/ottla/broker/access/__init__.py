"""Who may do what on this broker: the rules of the cluster, and the questions of requests."""
