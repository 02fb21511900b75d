"""Listeners: where they are, what they speak, and who may come in."""
