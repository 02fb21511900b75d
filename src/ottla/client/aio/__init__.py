"""The client for asyncio programs."""

from ottla.client.aio.client import Client

__all__ = ["Client"]
