"""The cluster's access rules in ZooKeeper: read at the start, followed by notes, and written.

Any broker writes, onto the version it has read, and leaves a note; every broker, Apache's too, reads again
what a note names. As everywhere, nobody watches the rules themselves.
"""

import logging
from collections.abc import Callable
from typing import Final

from ottla.broker.access.authorizer import Authorizer
from ottla.broker.runtime.runtime import Runtime
from ottla.broker.runtime.tasks import Pause, Steps, persistently
from ottla.security.acls.kinds import (
    EVERYBODY,
    TYPES,
    WILDCARD,
    Entry,
    Operation,
    PatternType,
    Permission,
    Resource,
)
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
LIST_AGAIN_MS = 1000
CLOSED: Final = frozenset({Entry(EVERYBODY, WILDCARD, Operation.ALL, Permission.DENY)})
"""What holds for a resource whose rules nobody could read yet: they may have been denials."""
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
                names = yield from _names_in(codec_acl.parent(kind, pattern))
                found |= {Resource(kind, name, pattern) for name in names}
        for resource in {*found, *self._authorizer.rules.resources()}:
            yield from self._read(resource)
        log.info("access rules are read resources=%d", len(self._authorizer.rules))

    def on_new_session(self) -> None:
        """Notes may have been missed, and the watches are gone."""
        self._runtime.own.spawn(self.load())

    def _read(self, resource: Resource) -> Steps[None]:
        """Rules that cannot be read leave those that were known, and close what had none: nobody gets in by a
        mistake of another."""
        path = codec_acl.path(resource)
        found = yield from persistently(GetData(path))
        try:
            self._authorizer.put(resource, _rules_in(found, path))
        except MalformedZnode as malformed:
            log.error("access rules cannot be read path=%s reason=%s", path, malformed)
            self._authorizer.put(resource, self._authorizer.rules.of(resource) or CLOSED)

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
        may_be_written = False
        for _ in range(WRITES_MAX):
            found = yield from persistently(GetData(path))
            is_there = isinstance(found, Data)
            try:
                before = _rules_in(found, path)
            except MalformedZnode as malformed:
                return str(malformed)
            after = change(before)
            if after == before:
                self._authorizer.put(resource, after)
                if may_be_written:
                    yield from self._leave_note(resource)
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
                yield from self._leave_note(resource)
                return None
            may_be_written |= isinstance(result, Lost)
            if not isinstance(result, Lost) and not _may_try_again(result):
                return f"ZooKeeper refused: {result}"
            yield Pause(WRITE_AGAIN_MS)
        return f"others changed {path} {WRITES_MAX} times meanwhile"

    def _leave_note(self, resource: Resource) -> Steps[None]:
        prefix, note = codec_acl.change_note(resource)
        yield from persistently(Create(prefix, note, sequential=True))


def _names_in(path: str) -> Steps[tuple[str, ...]]:
    """Without them nobody could be let in: as long as ZooKeeper does not show them, the broker waits."""
    while not isinstance(listed := (yield from persistently(GetChildren(path))), Children):
        log.error("access rules cannot be listed, trying again path=%s reason=%s", path, listed)
        yield Pause(LIST_AGAIN_MS)
    return listed.names


def _rules_in(found: object, path: str) -> frozenset[Entry]:
    """What ZooKeeper's answer says; only a node that is not there says that there is no rule."""
    if isinstance(found, Data):
        return codec_acl.decode(found.data, path)
    if isinstance(found, Failed) and found.code is ZkCode.NO_NODE:
        return frozenset()
    raise MalformedZnode(f"{path}: ZooKeeper refused to show it: {found}")


def _may_try_again(result: object) -> bool:
    codes = (ZkCode.BAD_VERSION, ZkCode.NO_NODE, ZkCode.NODE_EXISTS)
    return isinstance(result, Failed) and result.code in codes
