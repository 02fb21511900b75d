"""Handlers of producer ids and transactions."""
