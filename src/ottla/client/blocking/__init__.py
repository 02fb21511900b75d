"""The client for ordinary programs: calls block."""

from ottla.client.blocking.client import Client

__all__ = ["Client"]
