"""Asks a ZooKeeper server for a real session, in the fewest bytes that do so.

An open port, or ``imok`` after ``ruok``, comes up to half a second before sessions are accepted; what counts
for a broker is a session. The full client lives in ``ottla.zookeeper``; this one stays free of an event loop.
"""

import socket
import struct

_CONNECT = struct.Struct(
    ">iqiqi16s?"
)  # protocol version, last zxid, time-out ms, session id, password, read-only
_PASSWORD = bytes(16)
_CLOSE_SESSION = struct.pack(">iii", 8, 1, -11)
_SESSION_TIMEOUT_MS = 10_000
_SESSION_ID_AT = slice(8, 16)


def accepts_sessions(host: str, port: int, timeout_s: float) -> bool:
    """Open a session and close it again; False when the server does not grant one in time."""
    request = _CONNECT.pack(0, 0, _SESSION_TIMEOUT_MS, 0, len(_PASSWORD), _PASSWORD, False)
    try:
        with socket.create_connection((host, port), timeout_s) as connection:
            connection.sendall(struct.pack(">i", len(request)) + request)
            answer = _receive_frame(connection)
            if int.from_bytes(answer[_SESSION_ID_AT], "big") == 0:
                return False
            connection.sendall(_CLOSE_SESSION)
            _receive_frame(connection)
    except (OSError, UnicodeError):
        return False
    return True


def four_letter_word(host: str, port: int, word: str, timeout_s: float = 2.0) -> str:
    """The answer to one of ZooKeeper's four letter words; empty when there is none."""
    try:
        with socket.create_connection((host, port), timeout_s) as connection:
            connection.sendall(word.encode("ascii"))
            parts = []
            while part := connection.recv(65_536):
                parts.append(part)
    except (OSError, UnicodeError):
        return ""
    return b"".join(parts).decode("utf-8", errors="replace")


def _receive_frame(connection: socket.socket) -> bytes:
    (size,) = struct.unpack(">i", _receive(connection, 4))
    return _receive(connection, size)


def _receive(connection: socket.socket, size: int) -> bytes:
    received = bytearray()
    while len(received) < size:
        part = connection.recv(size - len(received))
        if not part:
            raise ConnectionResetError("the server hung up")
        received += part
    return bytes(received)
