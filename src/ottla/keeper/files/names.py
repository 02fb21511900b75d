"""The names in a ZooKeeper data directory: logs after their first zxid, snapshots after their last."""

import re
from typing import Final, Literal, NamedTuple

from ottla.storage.disk.port import Disk

VERSION_DIRECTORY: Final = "version-2"
LOCK: Final = ".keeper.lock"
UNFINISHED_PREFIX: Final = "unfinished."
"""Stands before a snapshot's name while it is written, where Java's server does not look for snapshots."""

_NAME = re.compile(r"(log|snapshot)\.([0-9a-f]{1,16})(\..+)?")

Kind = Literal["log", "snapshot"]


class NumberedFile(NamedTuple):
    """A log or a snapshot; sorted by zxid."""

    zxid: int
    path: str


class Listing(NamedTuple):
    """What is in a version directory, oldest first; epoch files of an ensemble are left alone."""

    snapshots: list[NumberedFile]
    logs: list[NumberedFile]
    packed: list[str]
    """Snapshots that Java's server compressed."""
    unfinished: list[str]


def file_path(home: str, kind: Kind, zxid: int) -> str:
    """Where the log or snapshot with this zxid is."""
    return f"{home}/{kind}.{zxid:x}"


def unfinished_path(home: str, zxid: int) -> str:
    """Where a snapshot is while it is written."""
    return f"{home}/{UNFINISHED_PREFIX}snapshot.{zxid:x}"


def list_files(disk: Disk, home: str) -> Listing:
    """Sort what is there by what it is."""
    found = Listing([], [], [], [])
    for entry in disk.list_directory(home):
        path = f"{home}/{entry.name}"
        if entry.name.startswith(UNFINISHED_PREFIX):
            found.unfinished.append(path)
        elif (name := _NAME.fullmatch(entry.name)) is None:
            continue
        elif name[3] is not None:
            found.packed.extend([path] if name[1] == "snapshot" else [])
        else:
            files = found.logs if name[1] == "log" else found.snapshots
            files.append(NumberedFile(int(name[2], 16), path))
    found.snapshots.sort()
    found.logs.sort()
    return found
