"""How test processes share the tests: a file at a time, the long ones first."""

from __future__ import annotations

from typing import Any

from xdist.scheduler import LoadScopeScheduling

LONG_FIRST = ("simulation", "spark", "chaos", "interop", "integration")
"""Folders of tests; what comes last should be short, so that no process waits for another's last file."""


def kept_together(nodeid: str) -> str:
    """What one process runs: a file, with the cluster it starts; all of Spark, which is started once."""
    file = nodeid.split("::", 1)[0]
    return "spark" if "spark" in file.split("/") else file


def place_in_line(nodeid: str) -> int:
    """The long folders' tests are handed out before the others."""
    folders = nodeid.split("/")
    return next((n for n, name in enumerate(LONG_FIRST) if name in folders), len(LONG_FIRST))


class ByFile(LoadScopeScheduling):
    """Hands out whole files, in the order in which they were collected.

    Xdist's own groups have no effect: it marks them in an attribute that pytest does not read any more.
    """

    def __init__(self, config: Any, log: Any = None) -> None:
        config.option.loadscopereorder = False
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        return kept_together(nodeid)
