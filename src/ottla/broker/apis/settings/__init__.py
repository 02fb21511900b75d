"""Handlers that show and change settings."""
