"""Handlers of the group protocol."""
