"""The requests of a session: which wait, which are on the wire, and what becomes of them when it breaks."""

from collections import deque
from typing import Final

from ottla.zookeeper.jute import MalformedReply
from ottla.zookeeper.ops import Lost, Op
from ottla.zookeeper.protocol import CODES, READS, XID_SET_WATCHES, OpCode, frame_request

XID_MAX: Final = 2**31 - 1


class Request:
    """One request. ``op`` is ``None`` for the session's own ones, which nobody waits for."""

    __slots__ = ("body", "chroot", "code", "is_read", "op", "token", "xid")

    def __init__(self, op: Op | None, code: int, body: bytes, token: object = None, chroot: str = "") -> None:
        self.op = op
        self.code = code
        self.body = body
        self.token = token
        self.chroot = chroot
        self.is_read = op is not None and type(op) in READS
        self.xid = 0


def request_for(op: Op, body: bytes, token: object, chroot: str) -> Request:
    """A request of a caller."""
    return Request(op, CODES[type(op)], body, token, chroot)


class RequestQueue:
    """Answers come in the order of requests; anything else is a broken connection."""

    __slots__ = ("_last_xid", "in_flight", "waiting")

    def __init__(self) -> None:
        self.waiting: deque[Request] = deque()
        self.in_flight: deque[Request] = deque()
        self._last_xid = 0

    def take(self) -> list[bytes]:
        """The frames of everything that waits; from now on it is on the wire."""
        frames: list[bytes] = []
        while self.waiting:
            request = self.waiting.popleft()
            request.xid = XID_SET_WATCHES if request.code == OpCode.SET_WATCHES else self._next_xid()
            frames.append(frame_request(request.xid, request.code, request.body))
            if not request.is_read:
                request.body = b""
            self.in_flight.append(request)
        return frames

    def _next_xid(self) -> int:
        self._last_xid = self._last_xid + 1 if self._last_xid < XID_MAX else 1
        return self._last_xid

    def answered(self, xid: int) -> Request:
        """The request that this reply belongs to: always the oldest on the wire."""
        if not self.in_flight or self.in_flight[0].xid != xid:
            expected = self.in_flight[0].xid if self.in_flight else "none"
            raise MalformedReply(f"a reply to request {xid} came, expected was {expected}")
        return self.in_flight.popleft()

    def connection_lost(self) -> list[tuple[Request, Lost]]:
        """Reads will be asked again; writes are reported, those on the wire as maybe applied.

        A write that still waits is reported too: it may have been meant to come after one that is lost.
        """
        lost = [(r, Lost(True)) for r in self.in_flight if not r.is_read and r.op is not None]
        lost += [(r, Lost(False)) for r in self.waiting if not r.is_read and r.op is not None]
        reads = [r for queue in (self.in_flight, self.waiting) for r in queue if r.is_read]
        self.in_flight.clear()
        self.waiting = deque(reads)
        return lost

    def session_over(self) -> list[tuple[Request, Lost]]:
        """Nothing will be asked again."""
        lost = self.connection_lost()
        lost += [(r, Lost(False)) for r in self.waiting if r.op is not None]
        self.waiting.clear()
        return lost
