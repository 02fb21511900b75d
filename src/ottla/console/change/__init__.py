"""What the console may do to a cluster: each act is planned, shown, and done only as it was shown."""
