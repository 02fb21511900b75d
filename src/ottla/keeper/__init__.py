"""The built-in keeper without its sockets: one ZooKeeper server, and the files that it keeps."""
