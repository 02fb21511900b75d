"""Aborted transactions of a segment (``.txnindex``, entries of 34 bytes), for readers of committed data."""

from struct import Struct
from typing import NamedTuple

_ENTRY = Struct(">hqqqq")
ENTRY_SIZE = _ENTRY.size
VERSION = 0


class AbortedTransaction(NamedTuple):
    """An aborted transaction, and the last stable offset after its marker."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


def encode_aborted(entry: AbortedTransaction) -> bytes:
    return _ENTRY.pack(VERSION, *entry)


def decode_txn_index(content: bytes, base_offset: int) -> list[AbortedTransaction] | None:
    """Read a file's bytes; ``None`` if they cannot be a transaction index of that segment."""
    if len(content) % ENTRY_SIZE:
        return None
    found: list[AbortedTransaction] = []
    for version, *fields in _ENTRY.iter_unpack(content):
        entry = AbortedTransaction(*fields)
        if version != VERSION or entry.last_offset < base_offset or entry.first_offset > entry.last_offset:
            return None
        if found and entry.last_offset <= found[-1].last_offset:
            return None
        found.append(entry)
    return found
