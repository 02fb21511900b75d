"""Connections to the other brokers."""
