"""Kafka's tool for access rules."""
