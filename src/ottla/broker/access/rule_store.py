"""The cluster's access rules in ZooKeeper: read at the start, followed by notes, and written.

Any broker writes, onto the version it has read, and leaves a note; every broker, Apache's too, reads again
what a note names. As everywhere, nobody watches the rules themselves.
"""

import logging
from collections.abc import Callable

from ottla.broker.access.authorizer import Authorizer
from ottla.broker.runtime.runtime import Runtime
from ottla.broker.runtime.tasks import Pause, Steps, persistently
from ottla.security.acls.kinds import TYPES, Entry, PatternType, Resource
from ottla.znodes import codec_acl, paths
from ottla.znodes.codec import MalformedZnode
from ottla.zookeeper.ops import (
    ANY_VERSION,
    Children,
    Create,
    Created,
    Data,
    DataSet,
    Delete,
    Deleted,
    Failed,
    GetChildren,
    GetData,
    Lost,
    SetData,
    WatchEvent,
    ZkCode,
)

log = logging.getLogger(__name__)

NOTE_LIFE_MS = 15 * 60 * 1000
"""Notes about changes are removed after a quarter of an hour."""
WRITES_MAX = 10
WRITE_AGAIN_MS = 100
Change = Callable[[frozenset[Entry]], frozenset[Entry]]


class RuleStore:
    """Keeps the authorizer's rules those of ZooKeeper."""

    def __init__(self, runtime: Runtime, authorizer: Authorizer) -> None:
        self._runtime = runtime
        self._authorizer = authorizer
        self._last_notes = dict.fromkeys(codec_acl.CHANGE_LISTS, -1)
        self._is_reading = False
        self._must_read_again = False
        for changes in codec_acl.CHANGE_LISTS:
            runtime.zk.watch(changes, self._on_note)

    def load(self) -> Steps[None]:
        """Make what is missing, watch for notes, then read every rule: nothing is missed in between."""
        for path in codec_acl.PERSISTENT:
            for each in (*paths.parents(path), path):
                yield from persistently(Create(each))
        yield from self._follow_notes()
        found: set[Resource] = set()
        for pattern in (PatternType.LITERAL, PatternType.PREFIXED):
            for kind in TYPES:
                listed = yield from persistently(GetChildren(codec_acl.parent(kind, pattern)))
                if isinstance(listed, Children):
                    found |= {Resource(kind, name, pattern) for name in listed.names}
        for resource in {*found, *self._authorizer.rules.resources()}:
            yield from self._read(resource)
        log.info("access rules are read resources=%d", len(self._authorizer.rules))

    def on_new_session(self) -> None:
        """Notes may have been missed, and the watches are gone."""
        self._runtime.own.spawn(self.load())

    def _read(self, resource: Resource) -> Steps[None]:
        """Rules that cannot be read leave those that were known: nobody gets in by a mistake of another."""
        path = codec_acl.path(resource)
        found = yield from persistently(GetData(path))
        try:
            self._authorizer.put(
                resource, codec_acl.decode(found.data if isinstance(found, Data) else None, path)
            )
        except MalformedZnode as malformed:
            log.error("access rules cannot be read path=%s reason=%s", path, malformed)

    # ---- notes

    def _on_note(self, event: WatchEvent) -> None:
        if self._is_reading:
            self._must_read_again = True
            return
        self._is_reading = True
        self._runtime.own.spawn(self._follow_notes(), self._followed)

    def _followed(self, _: None) -> None:
        self._is_reading = False
        if self._must_read_again:
            self._must_read_again = False
            self._is_reading = True
            self._runtime.own.spawn(self._follow_notes(), self._followed)

    def _follow_notes(self) -> Steps[None]:
        for changes in codec_acl.CHANGE_LISTS:
            notes = yield from persistently(GetChildren(changes, watch=True))
            if isinstance(notes, Children):
                for name in sorted(notes.names, key=paths.sequence_number):
                    yield from self._follow(changes, name)

    def _follow(self, changes: str, name: str) -> Steps[None]:
        path = f"{changes}/{name}"
        number = paths.sequence_number(name)
        note = yield from persistently(GetData(path))
        if not isinstance(note, Data):
            return
        if number > self._last_notes[changes]:
            self._last_notes[changes] = number
            try:
                resource = codec_acl.decode_change(note.data, changes)
            except MalformedZnode as malformed:
                log.warning("a note of access rules cannot be read path=%s reason=%s", path, malformed)
                return
            yield from self._read(resource)
        if note.stat.ctime_ms + NOTE_LIFE_MS < self._runtime.clock.wall_ms():
            yield from persistently(Delete(path, ANY_VERSION))

    # ---- writing

    def change(self, resource: Resource, change: Change) -> Steps[str | None]:
        """Change the rules of one resource, whatever others do meanwhile; why it could not be done, if so."""
        path = codec_acl.path(resource)
        for _ in range(WRITES_MAX):
            found = yield from persistently(GetData(path))
            is_there = isinstance(found, Data)
            try:
                before = codec_acl.decode(found.data if is_there else None, path)
            except MalformedZnode as malformed:
                return str(malformed)
            after = change(before)
            if after == before:
                self._authorizer.put(resource, after)
                return None
            operation: Create | SetData | Delete
            if not is_there:
                operation = Create(path, codec_acl.encode(after))
            elif after:
                operation = SetData(path, codec_acl.encode(after), found.stat.version)
            else:
                operation = Delete(path, found.stat.version)
            result = yield operation
            if isinstance(result, Created | DataSet | Deleted):
                self._authorizer.put(resource, after)
                prefix, note = codec_acl.change_note(resource)
                yield from persistently(Create(prefix, note, sequential=True))
                return None
            if not isinstance(result, Lost) and not _may_try_again(result):
                return f"ZooKeeper refused: {result}"
            yield Pause(WRITE_AGAIN_MS)
        return f"others changed {path} {WRITES_MAX} times meanwhile"


def _may_try_again(result: object) -> bool:
    codes = (ZkCode.BAD_VERSION, ZkCode.NO_NODE, ZkCode.NODE_EXISTS)
    return isinstance(result, Failed) and result.code in codes
