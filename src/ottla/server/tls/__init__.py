"""TLS on the broker's sockets."""
