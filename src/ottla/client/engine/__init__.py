"""What all parts of the client stand on: tasks without threads, links to brokers, metadata."""
