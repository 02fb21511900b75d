"""A limit on open files: the least used are closed, and opened again when they are needed."""

from typing import Protocol

OPEN_FILES_MAX = 512


class FileHolder(Protocol):
    """What holds an open file and can do without it."""

    recently_used: bool
    """Set by each use, cleared when the holder is spared."""

    def release_file(self) -> None: ...


class OpenFiles:
    """The holders of open files; second chance decides who must close its file."""

    __slots__ = ("_holders", "limit")

    def __init__(self, limit: int = OPEN_FILES_MAX) -> None:
        self.limit = limit
        self._holders: dict[int, FileHolder] = {}

    def __len__(self) -> int:
        return len(self._holders)

    def opened(self, holder: FileHolder) -> None:
        """Count a holder that has opened its file; beyond the limit others have to close theirs."""
        holders = self._holders
        holders[id(holder)] = holder
        while len(holders) > self.limit:
            key = next(iter(holders))
            oldest = holders.pop(key)
            if oldest.recently_used and oldest is not holder:
                oldest.recently_used = False
                holders[key] = oldest
            else:
                oldest.release_file()

    def closed(self, holder: FileHolder) -> None:
        """Forget a holder that has closed its file."""
        self._holders.pop(id(holder), None)
