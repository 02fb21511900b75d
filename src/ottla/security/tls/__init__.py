"""TLS without sockets: stores, names in certificates, and one connection's bytes."""
