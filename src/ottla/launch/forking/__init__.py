"""Brokers forked from one process that has imported all they need: the second broker costs milliseconds."""
