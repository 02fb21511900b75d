"""Logins as tests speak them, to Ottla and to Apache Kafka alike."""
