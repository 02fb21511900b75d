"""A disk of its own for every broker: memory that can be made full from one moment to the next."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from chaos.network import is_inside

SIZE_MIB = 3072
_SPARE_BYTES = 16 * 1024


class BrokerDisk:
    """A directory; where mounts are possible, with a file system that ``fill`` makes full."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.can_fill = is_inside()
        directory.mkdir(parents=True)
        if self.can_fill:
            _mount("-t", "tmpfs", "-o", f"size={SIZE_MIB}m", "tmpfs", str(directory))

    def fill(self) -> None:
        """From now on there is next to no room; what is written meanwhile may need a second look."""
        spare = _SPARE_BYTES
        while not self._is_shrunk_to(shutil.disk_usage(self.directory).used + spare):
            spare *= 2

    def _is_shrunk_to(self, size: int) -> bool:
        command = ["mount", "-o", f"remount,size={size}", str(self.directory)]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0

    def free(self) -> None:
        """There is room again."""
        _mount("-o", f"remount,size={SIZE_MIB}m", str(self.directory))

    def wipe(self) -> None:
        """Everything on it is gone."""
        for entry in os.scandir(self.directory):
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path)
            else:
                os.unlink(entry.path)


def _mount(*arguments: str) -> None:
    done = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"mount {' '.join(arguments)}: {done.stderr.strip()}"
