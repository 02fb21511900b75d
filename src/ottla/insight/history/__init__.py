"""What happened, from the records of ``__ottla_decisions``."""
