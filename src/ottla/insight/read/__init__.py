"""What is asked of a cluster for a picture of it: operations of the client's core."""
