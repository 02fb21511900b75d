"""The guard of a broker: ends the broker's ZooKeeper session when the kernel says that its process is gone.

A script of its own, started by the broker (``handle.py``) as ``python -I -S watcher.py``, to be small;
it imports at its start all that it will need. Its parent is the broker: as long as ``getppid`` names it, the
process may live, frozen or cut off as it may be, and nothing is done. A closed pipe proves nothing.

Before it closes the session the guard leaves a node in ZooKeeper that says how the process ended, for the
controller to tell as the cause of what it decides.

Arguments: the broker's process id, ZooKeeper's chroot, its servers as ``host:port``. Standard input brings a
line for each session, ``id time-out-ms password-in-hex broker broker-epoch server``; the last one counts.
``done`` means that the broker ends in order. The guard ends with its broker, at the latest after the time-out
of the session.
"""

import fcntl
import os
import select
import signal
import socket
import struct
import sys
import time
from contextlib import suppress

_LOOK_AGAIN_S = 0.2
_TALK_S = 1.0
_PAUSE_S = 0.05
_FRAME_BYTES_MAX = 4096
_CREATE, _DELETE, _CLOSE = 1, 2, -11
_XID, _CLOSE_XID = 1, 2
_DEATHS = ("/ottla", "/ottla/deaths")
_OPEN_TO_ALL = struct.pack(">iii5si6s", 1, 31, 5, b"world", 6, b"anyone")
_CLOSED = "its guard closed the session"
_PIDFD_GET_INFO = 0xC040FF0B
_PIDFD_INFO_EXIT = 1 << 3
_PIDFD_INFO = struct.Struct("=Q52xi")
_EXIT_CODE_FIELD = 49
"""In ``/proc/PID/stat``, behind the command's name."""


class SessionUnknown(Exception):
    """The servers do not know the session, or not any more."""


def close_session(
    server: tuple[str, int], session_id: int, password: bytes, timeout_ms: int, before: bytes = b""
) -> None:
    """Take the session over, send what comes before its end, and end it; ``OSError`` when this server cannot
    be talked to.

    Only for a session whose process is dead: taking it over cuts its owner off.
    """
    body = struct.pack(">iqiqi", 0, 0, timeout_ms, session_id, len(password)) + password + b"\0"
    with socket.create_connection(server, timeout=_TALK_S) as connection:
        connection.sendall(struct.pack(">i", len(body)) + body)
        if _resumed(_read_frame(connection)) != session_id:
            raise SessionUnknown
        connection.sendall(before + _request(_CLOSE_XID, _CLOSE, b""))
        while _xid(_read_frame(connection)) != _CLOSE_XID:
            pass  # Answers to what came before; some of it may have been there already.


def last_words(chroot: str, broker: str, epoch: str, words: str) -> bytes:
    """The requests that leave a node with these words, in place of an older one."""
    parents = [_create(chroot + path, b"") for path in _DEATHS]
    path = f"{chroot}{_DEATHS[-1]}/{broker}"
    content = f'{{"version":1,"epoch":{epoch},"words":"{words}"}}'.encode()
    older = _request(_XID, _DELETE, _text(path.encode()) + struct.pack(">i", -1))
    return b"".join([*parents, older, _create(path, content)])


def _create(path: str, data: bytes) -> bytes:
    return _request(_XID, _CREATE, _text(path.encode()) + _text(data) + _OPEN_TO_ALL + struct.pack(">i", 0))


def _text(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def _request(xid: int, code: int, body: bytes) -> bytes:
    return struct.pack(">iii", len(body) + 8, xid, code) + body


def _read_frame(connection: socket.socket) -> bytes:
    (size,) = struct.unpack(">i", _read_bytes(connection, 4))
    if not 0 <= size <= _FRAME_BYTES_MAX:
        raise OSError(f"a frame of {size} bytes")
    return _read_bytes(connection, size)


def _read_bytes(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            raise OSError("it hung up")
        data += more
    return data


def _resumed(frame: bytes) -> int:
    if len(frame) < 16:
        raise OSError(f"an answer of {len(frame)} bytes")
    return int(struct.unpack_from(">q", frame, 8)[0])


def _xid(frame: bytes) -> int:
    if len(frame) < 16:
        raise OSError(f"an answer of {len(frame)} bytes")
    return int(struct.unpack_from(">i", frame)[0])


class Guard:
    """Watches one process, and knows its session."""

    def __init__(self, broker: int, chroot: str, servers: list[str]) -> None:
        self._broker = broker
        self._chroot = chroot
        self._servers = servers
        self._descriptor = _pid_descriptor(broker)
        self._pipe: list[int] = [0]
        self._told = b""
        self._last = ""

    def run(self) -> None:
        """Wait for the end of the broker, then end its session."""
        while os.getppid() == self._broker:
            watched = self._pipe + ([] if self._descriptor is None else [self._descriptor])
            ready, _, _ = select.select(
                watched, [], [], None if self._descriptor is not None else _LOOK_AGAIN_S
            )
            if 0 in ready and not self._listen():
                self._pipe = []
            if self._last == "done":
                return
        while self._pipe and select.select([0], [], [], 0)[0] and self._listen():
            pass  # What it said last.
        if self._last not in ("", "done"):
            self._end(*self._last.split())

    def _listen(self) -> bool:
        """Whether more may come; a line that is cut off does not count."""
        data = os.read(0, 4096)
        *lines, self._told = (self._told + data).split(b"\n")
        if lines:
            self._last = lines[-1].decode()
        return bool(data)

    def _end(self, session: str, timeout_ms: str, password: str, broker: str, epoch: str, at: str) -> None:
        ended = f"process {self._broker} ended{_how(self._broker, self._descriptor)}"
        signal.alarm(int(timeout_ms) // 1000 + 1)
        words = last_words(self._chroot, broker, epoch, f"{ended}; {_CLOSED}")
        key = (int(session), bytes.fromhex(password), int(timeout_ms), words)
        outcome = _CLOSED
        try:
            self._close(at, time.monotonic() + int(timeout_ms) / 1000, key)
        except SessionUnknown:
            outcome = "the session was over already"
        except OSError as error:
            outcome = f"its session lasts until its time-out: no ZooKeeper server answers ({error})"
        _tell(f"{ended}; {outcome} broker={broker} session=0x{int(session):x}")

    def _close(self, first: str, give_up: float, key: tuple[int, bytes, int, bytes]) -> None:
        """Try server after server, the broker's last one first, for as long as the session may last."""
        servers = [first, *(server for server in self._servers if server != first)]
        while True:
            for server in servers:
                name, _, port = server.rpartition(":")
                try:
                    close_session((name, int(port)), *key)
                    return
                except OSError:
                    if time.monotonic() > give_up:
                        raise
            time.sleep(_PAUSE_S)


def _pid_descriptor(pid: int) -> int | None:
    """Readable once the process has ended; None where the system has no such thing."""
    try:
        return os.pidfd_open(pid) if sys.platform == "linux" else None
    except OSError:
        return None


def _how(pid: int, descriptor: int | None) -> str:
    """How it ended, where that can be known: a zombie tells it, and afterwards its descriptor may."""
    status = None
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b") ")[2].split()
        if fields[0] in (b"Z", b"X"):
            status = int(fields[_EXIT_CODE_FIELD])
    except (OSError, IndexError):
        pass
    if status is None and descriptor is not None:
        info = bytearray(_PIDFD_INFO.pack(_PIDFD_INFO_EXIT, 0))
        try:
            fcntl.ioctl(descriptor, _PIDFD_GET_INFO, info)
            mask, code = _PIDFD_INFO.unpack(info)
            status = code if mask & _PIDFD_INFO_EXIT else None
        except OSError:
            pass
    if status is None:
        return ""
    code = os.waitstatus_to_exitcode(status)
    return f" by signal {-code}" if code < 0 else f" with code {code}"


def _tell(what: str) -> None:
    now = time.time()
    moment = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(now))
    line = f"{moment},{int(now * 1000) % 1000:03d} INFO ottla.guard {what}\n"
    with suppress(OSError):  # Perhaps nobody listens any more.
        os.write(2, line.encode())


def main(arguments: list[str]) -> int:
    """Guard the process of this id."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    Guard(int(arguments[0]), arguments[1], arguments[2:]).run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
