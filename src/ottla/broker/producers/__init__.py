"""Producer ids, and verification of transactions."""
