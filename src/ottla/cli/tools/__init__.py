"""Kafka's command-line tools, with their flags and their columns, one module each."""
