"""What the server holds of one connection."""

from ottla.zookeeper.server.requests.access import Identity

OUT_BYTES_MAX = 4 * 1024 * 1024
"""No further request of a connection is served while so much waits to be sent to it."""


class Connection:
    """One client's connection, from its first byte to its end."""

    __slots__ = (
        "_partial",
        "_wanted",
        "address",
        "has_session",
        "identities",
        "is_closing",
        "opened_ms",
        "out",
        "out_bytes",
        "port",
        "received",
        "sent",
        "session",
        "timeout_ms",
        "waiting",
    )

    def __init__(self, address: str, port: int = 0, opened_ms: int = 0) -> None:
        self.address = address
        self.port = port
        self.opened_ms = opened_ms
        self.session = 0
        self.has_session = False
        self.timeout_ms = 0
        self.identities: list[Identity] = [("ip", address)]
        self.out: list[bytes] = []
        self.out_bytes = 0
        self.is_closing = False
        """Nothing more is taken from it, and it is closed once what waits was sent."""
        self.waiting = b""
        """Whole requests that are not served yet."""
        self.received = 0
        self.sent = 0
        self._partial = bytearray()
        self._wanted = 0

    def take(self, data: bytes) -> bytes:
        """All bytes to be served now; empty while the first frame among them is not complete."""
        if not self._partial:
            waiting, self.waiting = self.waiting, b""
            return waiting + data if waiting else data
        self._partial += data
        if len(self._partial) < self._wanted:
            return b""
        whole, self._partial = bytes(self._partial), bytearray()
        return whole

    def keep(self, rest: bytes, wanted: int) -> None:
        """The beginning of a frame that needs so many bytes in all."""
        self._partial = bytearray(rest)
        self._wanted = wanted

    def send(self, frame: bytes) -> None:
        """Put one frame behind those that wait."""
        self.out.append(frame)
        self.out_bytes += len(frame)
        self.sent += 1

    def take_out(self) -> list[bytes]:
        """What is to be sent now."""
        out, self.out, self.out_bytes = self.out, [], 0
        return out
