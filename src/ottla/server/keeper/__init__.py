"""The keeper's edge: asyncio, sockets, clock."""
