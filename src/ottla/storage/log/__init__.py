"""One partition's log: append, read, truncate, recover."""
