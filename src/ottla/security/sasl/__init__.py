"""SASL: the mechanisms, and the order in which their messages go."""
