"""Ottla's own client: a core without I/O, and two edges, ``blocking`` and ``aio``.

Import the edge you need; this package imports nothing, so that a blocking tool never loads asyncio.
"""
