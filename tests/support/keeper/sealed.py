"""Entries of a log as Java's server writes them: without what was synced before."""

from __future__ import annotations

import struct
from zlib import adler32


def sealed(body: bytes) -> bytes:
    """A whole entry with this body."""
    return struct.pack(">qi", adler32(body), len(body)) + body + b"\x42"


def sealed_snapshot(content: bytes) -> bytes:
    """A snapshot that ends after this content, with the checksum that it must have."""
    ended = content + b"\0\0\0\1/"
    return ended + struct.pack(">q", adler32(ended)) + b"\0\0\0\1/"
