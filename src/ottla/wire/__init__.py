"""Bytes to messages and back: Kafka's whole protocol, without a socket in sight."""
