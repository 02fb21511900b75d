"""Exactly-once writing: one durable decision for each batch, in Kafka's own transactions."""
