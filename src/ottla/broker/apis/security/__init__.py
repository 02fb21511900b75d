"""Handlers of security APIs."""
