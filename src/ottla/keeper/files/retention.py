"""Removes what no start needs any more: all but three snapshots, and the logs before the oldest of them."""

from collections.abc import Collection
from itertools import pairwise
from typing import Final

from ottla.keeper.files.names import NumberedFile, list_files
from ottla.storage.disk.port import Disk

SNAPSHOTS_KEPT: Final = 3


def logs_behind(logs: list[NumberedFile], zxid: int) -> list[NumberedFile]:
    """The logs that may hold entries behind a zxid; the last one always may."""
    needed = [log for log, after in pairwise(logs) if after.zxid > zxid + 1]
    return needed + logs[-1:]


def remove_old_files(disk: Disk, home: str, damaged: Collection[str]) -> None:
    """Keep the newest snapshots and what is needed to start from each; damaged ones do not count."""
    found = list_files(disk, home)
    kept = [each for each in found.snapshots if each.path not in damaged][-SNAPSHOTS_KEPT:]
    if len(kept) < SNAPSHOTS_KEPT:
        return
    oldest = kept[0]
    needed = logs_behind(found.logs, oldest.zxid)
    for snapshot in found.snapshots:
        if snapshot < oldest:
            disk.remove(snapshot.path)
    for log in found.logs:
        if log not in needed:
            disk.remove(log.path)
