"""Kafka's ``ssl.…`` settings, of brokers and clients alike, and what Python's ``ssl`` makes of them."""
