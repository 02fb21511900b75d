"""One segment of a log and its indexes."""
