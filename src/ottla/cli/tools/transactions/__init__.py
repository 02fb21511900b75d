"""``ottla transactions``: Kafka's ``kafka-transactions``."""
