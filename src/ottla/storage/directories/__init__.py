"""All logs of a broker, over its log directories."""
