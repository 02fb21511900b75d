"""The warmed process: it imports the broker once, and forks a broker whenever it is asked to.

Started by ``forked.py`` as ``python -m ottla.launch.forking.warm CONTROL PARENT TITLE``. A request is JSON:
what a broker is given behind ``python -m ottla.server``, and how much grace it has to end. With it come two
descriptors: where the broker prints, and its lifeline, a socket over which its process id and its exit code
are told. Each broker has a guard of its own, as every process that we start (``guard.py``); when this process
ends, brokers and guards go on.

Whatever is imported here is shared by all brokers, so nothing may start a thread or an event loop.
"""

import ctypes
import gc
import json
import os
import select
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path

from ottla.launch.guard import become_child, pid_descriptor, stand_guard

REQUEST_BYTES_MAX = 64 * 1024
DESCRIPTORS = 2
_ARGUMENTS_BEGIN, _ARGUMENTS_END = 45, 46
"""Fields of /proc/self/stat behind the name of the command."""


def main(arguments: list[str]) -> int:
    """Serve requests until the parent is gone; in a forked broker, be that broker."""
    parent = int(arguments[1])
    watched = pid_descriptor(parent)
    if os.getppid() != parent:
        return 0
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # Nobody waits for the guards: they report by themselves.
    gc.disable()  # Collecting costs a tenth of the time that the imports take.
    from ottla.server.app import main as run_broker

    gc.freeze()
    with socket.socket(fileno=int(arguments[0])) as control:
        words = _serve(control, watched)
    if words is None:
        return 0
    gc.enable()
    return run_broker(words)


def _serve(control: socket.socket, parent: int | None) -> list[str] | None:
    """Fork for every request. Returns None when the parent is gone, and in a broker its arguments."""
    while True:
        watched = [control.fileno()] if parent is None else [control.fileno(), parent]
        ready, _, _ = select.select(watched, [], [])
        if parent in ready:
            return None
        message, descriptors, _, _ = socket.recv_fds(control, REQUEST_BYTES_MAX, DESCRIPTORS)
        if not message:
            return None
        if os.fork() == 0:
            control.close()
            asked = json.loads(message)
            output, lifeline = descriptors
            _start_guarded(asked["arguments"], asked["grace_s"], output, lifeline, parent)
            words: list[str] = asked["arguments"]
            return words
        for descriptor in descriptors:
            os.close(descriptor)


def _start_guarded(words: list[str], grace_s: float, output: int, lifeline: int, parent: int | None) -> None:
    """Fork the broker and guard it to its end; returns in the broker alone."""
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for stream in (1, 2):
        os.dup2(output, stream)
    os.close(output)
    guard = os.getpid()
    child = os.fork()
    if child == 0:
        os.close(lifeline)
        if parent is not None:
            os.close(parent)
        become_child(guard)
        _show_as(["ottla", "broker", *words])
        return
    _show_as(["ottla", "guard", str(child)])
    os.write(lifeline, f"pid {child}\n".encode())
    code = stand_guard(child, lifeline, parent, grace_s)
    with suppress(OSError):  # whoever asked for it is gone
        os.write(lifeline, f"exit {code}\n".encode())
    os._exit(code)


def _show_as(words: list[str]) -> None:
    """Let ``ps`` show these words and not those of the process that forked us."""
    try:
        fields = Path("/proc/self/stat").read_text(encoding="ascii").rpartition(") ")[2].split()
        begin, end = int(fields[_ARGUMENTS_BEGIN]), int(fields[_ARGUMENTS_END])
    except (OSError, ValueError, IndexError):
        return
    size = end - begin
    shown = b"\0".join(map(os.fsencode, words))[: size - 1]
    ctypes.memmove(begin, shown.ljust(size, b"\0"), size)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
