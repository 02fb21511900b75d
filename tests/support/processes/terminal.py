"""A program at a terminal of its own: what it shows there, and keys pressed while it runs."""

from __future__ import annotations

import fcntl
import os
import pty
import subprocess
import termios
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

from support.running.waiting import wait_until

CTRL_C = b"\x03"
SHOW_S_MAX = 180
END_S_MAX = 60


class Terminal:
    """One program in the foreground of a pseudo-terminal, as a shell would start it."""

    def __init__(self, command: list[str], directory: Path) -> None:
        self._master, slave = pty.openpty()
        self._shown = bytearray()
        self.process = subprocess.Popen(
            command,
            cwd=directory,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(slave)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def shown(self) -> str:
        """All that was shown so far."""
        return bytes(self._shown).decode(errors="replace").replace("\r\n", "\n")

    def await_text(self, text: str) -> None:
        """Until it is shown, which must happen before the program ends."""
        wait_until(
            lambda: text in self.shown or self.process.poll() is not None, f"it shows {text!r}", SHOW_S_MAX
        )
        assert text in self.shown, self.shown

    def press(self, key: bytes) -> None:
        """One key."""
        os.write(self._master, key)

    def await_end(self) -> int:
        """The program's exit code, when all that it showed is here."""
        code = self.process.wait(END_S_MAX)
        self._reader.join(END_S_MAX)
        return code

    def _read(self) -> None:
        try:
            while piece := os.read(self._master, 4096):
                self._shown += piece
        except OSError:
            return  # So the last of its programs left the terminal.

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._reader.join(END_S_MAX)
        os.close(self._master)
