"""The ZooKeeper client's edge: sockets, TLS, the event loop."""
