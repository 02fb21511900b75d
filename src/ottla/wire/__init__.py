"""Bytes to messages and back: Kafka's whole protocol, without input or output."""
