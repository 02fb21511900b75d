"""Who watches what. A watcher is a connection: its watches end with it, and the client names them again."""

from collections.abc import Iterator
from typing import Final, Generic, TypeVar

from ottla.zookeeper.server.tree import CHILDREN_CHANGED, DELETED

STANDARD: Final = 1
PERSISTENT: Final = 2
RECURSIVE: Final = 4
ANY_MODE: Final = 7

WatcherT = TypeVar("WatcherT")


class WatchTable(Generic[WatcherT]):
    """Watches of one kind. Sets are dictionaries, so that order never depends on hashing."""

    __slots__ = ("_paths_of", "_recursive", "by_path")

    def __init__(self) -> None:
        self.by_path: dict[str, dict[WatcherT, int]] = {}
        self._paths_of: dict[WatcherT, dict[str, None]] = {}
        self._recursive = 0

    def add(self, path: str, watcher: WatcherT, mode: int = STANDARD) -> None:
        """Arm a watch; one of each mode at most."""
        watchers = self.by_path.setdefault(path, {})
        modes = watchers.get(watcher, 0)
        if modes & mode:
            return
        watchers[watcher] = modes | mode
        self._recursive += mode == RECURSIVE
        if not modes:
            self._paths_of.setdefault(watcher, {})[path] = None

    def has(self, path: str, watcher: WatcherT, mode: int) -> bool:
        """Whether such a watch is armed."""
        return bool(self.by_path.get(path, {}).get(watcher, 0) & mode)

    def remove(self, path: str, watcher: WatcherT, mode: int) -> bool:
        """Disarm; whether there was such a watch."""
        modes = self.by_path.get(path, {}).get(watcher, 0)
        if not modes & mode:
            return False
        self._recursive -= bool(modes & mode & RECURSIVE)
        if modes & ~mode:
            self.by_path[path][watcher] = modes & ~mode
        else:
            self._forget(path, watcher)
        return True

    def _forget(self, path: str, watcher: WatcherT) -> None:
        watchers = self.by_path[path]
        del watchers[watcher]
        if not watchers:
            del self.by_path[path]
        paths = self._paths_of[watcher]
        del paths[path]
        if not paths:
            del self._paths_of[watcher]

    def remove_watcher(self, watcher: WatcherT) -> None:
        """The connection is gone."""
        for path in self._paths_of.pop(watcher, ()):
            watchers = self.by_path[path]
            self._recursive -= bool(watchers.pop(watcher) & RECURSIVE)
            if not watchers:
                del self.by_path[path]

    def fire(self, path: str) -> dict[WatcherT, None]:
        """Who must be told that this node changed; watches that fire once are disarmed."""
        told: dict[WatcherT, None] = {}
        for watcher, modes in list(self.by_path.get(path, {}).items()):
            told[watcher] = None
            if modes == STANDARD:
                self._forget(path, watcher)
            elif modes & STANDARD:
                self.by_path[path][watcher] = modes & ~STANDARD
        if self._recursive:
            for above in _parents(path):
                for watcher, modes in self.by_path.get(above, {}).items():
                    if modes & RECURSIVE:
                        told[watcher] = None
        return told

    def paths_of(self, watcher: WatcherT) -> Iterator[str]:
        """What a connection watches."""
        return iter(self._paths_of.get(watcher, ()))

    @property
    def watchers(self) -> int:
        """How many connections watch something."""
        return len(self._paths_of)

    def __len__(self) -> int:
        return sum(map(len, self._paths_of.values()))


def _parents(path: str) -> Iterator[str]:
    while len(path) > 1:
        path = path.rpartition("/")[0] or "/"
        yield path


class Watches(Generic[WatcherT]):
    """The watches of data and existence, and those of children."""

    __slots__ = ("children", "data")

    def __init__(self) -> None:
        self.data: WatchTable[WatcherT] = WatchTable()
        self.children: WatchTable[WatcherT] = WatchTable()

    def fire(self, kind: int, path: str) -> dict[WatcherT, None]:
        """Who must be told of a change, each once."""
        if kind == CHILDREN_CHANGED:
            return self.children.fire(path) if self.children.by_path else {}
        told = self.data.fire(path) if self.data.by_path else {}
        if kind == DELETED and path in self.children.by_path:
            told.update(self.children.fire(path))
        return told

    def remove_watcher(self, watcher: WatcherT) -> None:
        """The connection is gone."""
        self.data.remove_watcher(watcher)
        self.children.remove_watcher(watcher)

    def __len__(self) -> int:
        return len(self.data) + len(self.children)
