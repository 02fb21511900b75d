"""Being the controller: stand for election, read, decide, write, tell the brokers."""
