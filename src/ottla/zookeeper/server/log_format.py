"""ZooKeeper's transaction log as bytes: a file header, then entries until the end or until zeros.

An entry is the checksum of its txn, the txn with its length, and one byte that ends it. Java's server puts a
digest of the tree behind the txn and skips what is too short for one. There we write how much of the file was
on the disk before: who finds a damaged entry learns from later ones whether it had been synced.
"""

from struct import Struct
from typing import Final
from zlib import adler32

from msgspec import Struct as Value

from ottla.zookeeper.server.txn_codec import TXN_BYTES_MIN, MalformedTxn, decode_txn, encode_txn
from ottla.zookeeper.server.txns import Txn, TxnHeader

LOG_HEADER: Final = Struct(">4siq").pack(b"ZKLG", 2, 0)
_MAGIC: Final = LOG_HEADER[:8]

_ENTRY_HEAD = Struct(">Qi")
_SYNCED = Struct(">q")
_END: Final = b"\x42"
ENTRY_HEAD_SIZE: Final = _ENTRY_HEAD.size
ENTRY_SIZE_MIN: Final = ENTRY_HEAD_SIZE + TXN_BYTES_MIN + len(_END)


class MalformedEntry(Exception):
    """Here is no entry, or a damaged one."""


class UnknownEntry(MalformedEntry):
    """The entry is whole, as its checksum says, but it holds nothing that this program knows."""


class Entry(Value, frozen=True):
    """One entry. ``synced_bytes``: how much of its file was on the disk before; ``None`` if Java wrote it."""

    header: TxnHeader
    txn: Txn
    synced_bytes: int | None


def is_log_header(content: bytes) -> bool:
    """Whether a file that begins so is a log; the database number in it means nothing."""
    return len(content) >= len(LOG_HEADER) and content.startswith(_MAGIC)


def encode_entry(header: TxnHeader, txn: Txn, synced_bytes: int) -> bytes:
    """One entry."""
    body = encode_txn(header, txn) + _SYNCED.pack(synced_bytes)
    return _ENTRY_HEAD.pack(adler32(body), len(body)) + body + _END


def body_size(head: bytes) -> int:
    """How many bytes follow an entry's head, the last one included; 0 where the zeros begin."""
    if len(head) < ENTRY_HEAD_SIZE:
        raise MalformedEntry("an entry is cut short")
    checksum, size = _ENTRY_HEAD.unpack_from(head)
    if checksum == size == 0:
        return 0
    if size < TXN_BYTES_MIN or checksum >> 32:
        raise MalformedEntry(f"no entry has {size} bytes and the checksum {checksum:#x}")
    return int(size) + len(_END)


def decode_entry(head: bytes, body: bytes) -> Entry:
    """The entry with this head and these bytes behind it."""
    checksum, size = _ENTRY_HEAD.unpack_from(head)
    if len(body) != size + len(_END):
        raise MalformedEntry("an entry is cut short")
    content = body[:size]
    if body[size:] != _END or adler32(content) != checksum:
        raise MalformedEntry("an entry's checksum is wrong")
    try:
        header, txn, rest = decode_txn(content)
    except MalformedTxn as error:
        raise UnknownEntry(f"an entry with the right checksum holds {error}") from None
    return Entry(header, txn, _SYNCED.unpack(rest)[0] if len(rest) == _SYNCED.size else None)
