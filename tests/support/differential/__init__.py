"""The same requests to two brokers, and what they answer compared field by field."""
