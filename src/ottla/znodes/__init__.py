"""Kafka's znodes: their paths, and their content to and from the model's values. Pure."""
