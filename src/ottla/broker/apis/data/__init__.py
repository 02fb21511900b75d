"""Handlers of the data plane: produce, fetch, offsets, log directories."""
