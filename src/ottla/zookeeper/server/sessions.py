"""Sessions: their ids, their passwords, and when they expire: in buckets of a tick, as at Java's server."""

from collections.abc import Iterable, Iterator
from typing import Final

SECRET: Final = 0xB3415C00
"""Java's: with it a session that Apache's server began can be resumed here, and the other way round."""
SERVER_ID: Final = 1


class Expiry:
    """Sessions by the end of the tick in which they expire. All times are of a clock that never goes back."""

    __slots__ = ("_buckets", "_due", "_next_ms", "tick_ms")

    def __init__(self, tick_ms: int, now_ms: int) -> None:
        self.tick_ms = tick_ms
        self._due: dict[int, int] = {}
        self._buckets: dict[int, dict[int, None]] = {}
        self._next_ms = self._round_up(now_ms)

    def _round_up(self, time_ms: int) -> int:
        return (time_ms // self.tick_ms + 1) * self.tick_ms

    def touch(self, session: int, timeout_ms: int, now_ms: int) -> None:
        """The session was heard: it expires after its time-out, and less than a tick later."""
        due_ms = self._round_up(now_ms + timeout_ms)
        before = self._due.get(session)
        if due_ms == before:
            return
        if before is not None and session in (bucket := self._buckets.get(before, {})):
            del bucket[session]
        self._due[session] = due_ms
        self._buckets.setdefault(due_ms, {})[session] = None

    def forget(self, session: int) -> None:
        """The session is over."""
        due_ms = self._due.pop(session, None)
        if due_ms is not None:
            self._buckets.get(due_ms, {}).pop(session, None)

    def next_ms(self) -> int | None:
        """When ``expired`` should be asked again; ``None`` while there is no session."""
        return self._next_ms if self._due else None

    def expired(self, now_ms: int) -> Iterator[int]:
        """The sessions that are over by now, in the order of their time; they are forgotten."""
        while self._next_ms <= now_ms:
            bucket = self._buckets.pop(self._next_ms, {})
            self._next_ms += self.tick_ms
            for session in bucket:
                self._due.pop(session, None)
                yield session
            if not self._buckets:
                self._next_ms = max(self._next_ms, self._round_up(now_ms))

    def times(self) -> dict[int, list[int]]:
        """Which sessions expire when."""
        return {due_ms: list(bucket) for due_ms, bucket in sorted(self._buckets.items()) if bucket}


def first_session_id(wall_ms: int, known: Iterable[int]) -> int:
    """The id before the first that this server gives: from the clock, and beyond all that it knows."""
    from_clock = (SERVER_ID << 56) | ((wall_ms << 24) & (2**64 - 1)) >> 8
    return max([from_clock, *(session for session in known if session >> 56 == SERVER_ID)])


def password_of(session: int) -> bytes:
    """What proves that a client owns a session: sixteen bytes of Java's generator, seeded with the id."""
    seed = (session ^ SECRET ^ 0x5DEECE66D) & (2**48 - 1)
    password = b""
    for _ in range(4):
        seed = (seed * 0x5DEECE66D + 0xB) & (2**48 - 1)
        password += (seed >> 16 & 0xFFFFFFFF).to_bytes(4, "little")
    return password
