"""Handlers that create, change and move topics and elect leaders."""
