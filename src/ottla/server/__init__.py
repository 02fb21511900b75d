"""The edge: the only place with asyncio, sockets, threads, the clock and logging."""
