"""Ottla: a Kafka cluster in Python."""
