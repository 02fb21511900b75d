"""Reads one log file: entries as far as they are whole, and what is behind the last of them."""

import re
from collections.abc import Iterator
from typing import Final

from ottla.storage.disk.port import File
from ottla.zookeeper.server.log_format import (
    ENTRY_HEAD_SIZE,
    LOG_HEADER,
    Entry,
    MalformedEntry,
    UnknownEntry,
    body_size,
    decode_entry,
    is_log_header,
)

WINDOW_BYTES: Final = 1024 * 1024
_MAYBE_AN_ENTRY = re.compile(rb"(?=\0{4}(?!\0{4}).{4}[\0-\x7f])", re.DOTALL)
"""A checksum of four bytes, written in eight, and the first byte of a length."""


class LogReader:
    """Reads a log from front to back."""

    __slots__ = ("_file", "_is_unknown", "_last_zxid", "_start", "_window", "damage", "good_bytes", "size")

    def __init__(self, file: File) -> None:
        self._file = file
        self._window = b""
        self._start = 0
        self._last_zxid = -1
        self._is_unknown = False
        self.size = file.size()
        self.good_bytes = 0
        """Where the last whole entry ends that was read."""
        self.damage: str | None = None
        """What is wrong behind the last whole entry."""

    def entries(self) -> Iterator[Entry]:
        """The entries, up to the end, to zeros until the end, or to the damage."""
        if not is_log_header(self._at(0, len(LOG_HEADER))):
            self.damage = "it does not begin as a log of ZooKeeper's"
            return
        self.good_bytes = len(LOG_HEADER)
        while self.good_bytes < self.size:
            try:
                entry, end = self._read(self.good_bytes)
            except MalformedEntry as error:
                if self._rest():
                    self.damage = str(error)
                    self._is_unknown = isinstance(error, UnknownEntry)
                return
            self.good_bytes = end
            self._last_zxid = entry.header.zxid
            yield entry

    def is_torn(self) -> bool:
        """Whether a crash can have cut off a write here: nothing behind it was written after it was synced.

        An entry of Java's server does not say what was synced before it, and counts as synced.
        """
        if self._is_unknown:
            return False
        if self.good_bytes == 0 and not LOG_HEADER.startswith(self._at(0, len(LOG_HEADER)).rstrip(b"\0")):
            return False
        return not any(
            entry.synced_bytes is None or entry.synced_bytes > self.good_bytes
            for entry in self._behind_damage()
        )

    def _behind_damage(self) -> Iterator[Entry]:
        """Whole entries behind the damage, wherever they begin."""
        rest = self._rest()
        position = 0
        while (found := _MAYBE_AN_ENTRY.search(rest, position)) is not None:
            position = found.start() + 1
            try:
                entry, end = self._read(self.good_bytes + found.start())
            except MalformedEntry:
                continue
            if entry.header.zxid > self._last_zxid:
                yield entry
                position = end - self.good_bytes

    def _rest(self) -> bytes:
        """All behind the last whole entry, without zeros at its end."""
        parts: list[bytes] = []
        zeros = 0
        for position in range(self.good_bytes, self.size, WINDOW_BYTES):
            part = self._file.pread(WINDOW_BYTES, position)
            if kept := part.rstrip(b"\0"):
                parts += [bytes(zeros), kept]
                zeros = 0
            zeros += len(part) - len(kept)
        return b"".join(parts)

    def _read(self, position: int) -> tuple[Entry, int]:
        head = self._at(position, ENTRY_HEAD_SIZE)
        size = body_size(head)
        start = position + ENTRY_HEAD_SIZE
        if size == 0 or start + size > self.size:
            raise MalformedEntry("an entry is cut short" if size else "zeros stand where an entry should")
        return decode_entry(head, self._at(start, size)), start + size

    def _at(self, position: int, size: int) -> bytes:
        """Bytes of the file, fewer at its end."""
        begin = position - self._start
        if begin < 0 or begin + size > len(self._window):
            self._window = self._file.pread(max(size, WINDOW_BYTES), position)
            self._start, begin = position, 0
        return self._window[begin : begin + size]
