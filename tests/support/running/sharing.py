"""How test processes share the tests: a file at a time, the longest first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from xdist.scheduler import LoadScopeScheduling


def kept_together(nodeid: str) -> str:
    """What one process runs: a file, with the cluster it starts; all of Spark, which is started once."""
    file = nodeid.split("::", 1)[0]
    return "spark" if "spark" in file.split("/") else file


def longest_first(nodeids: Sequence[str], durations: Mapping[str, int]) -> list[int]:
    """The tests' places in the order in which they are handed out.

    What comes last is short, so that no process waits for another's last file.
    """
    seconds: Counter[str] = Counter()
    for file in {nodeid.split("::", 1)[0] for nodeid in nodeids}:
        seconds[kept_together(file)] += durations.get(file, 0)
    return sorted(range(len(nodeids)), key=lambda place: -seconds[kept_together(nodeids[place])])


class ByFile(LoadScopeScheduling):
    """Hands out whole files, in the order in which they were collected.

    Xdist's own groups have no effect: it marks them in an attribute that pytest does not read any more.
    """

    def __init__(self, config: Any, log: Any = None) -> None:
        config.option.loadscopereorder = False
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        return kept_together(nodeid)
