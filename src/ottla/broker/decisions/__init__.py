"""Why things are as they are: decisions and loss receipts, written to ``__ottla_decisions``."""
