"""The names of a sink's transactions: a pool that is used again, so that coordinators need not remember many.

A start's generation is its driver's epoch, modulo the pool. So a task that outlived its driver uses names
that nobody else uses for the next starts, and one start never ends what a later one has opened.
"""

import re

GENERATIONS = 16
_OLDER = GENERATIONS // 2
_NAME = re.compile(r"(\d+)\.(\d+)\.(\d+)")


def driver_id(prefix: str) -> str:
    """Of the producer that writes decisions."""
    return f"{prefix}.driver"


def task_id(prefix: str, epoch: int, task: int, attempt: int) -> str:
    """Of one attempt of one task."""
    return f"{prefix}.{epoch % GENERATIONS}.{task}.{attempt}"


def is_ours(prefix: str, name: str, epoch: int) -> bool:
    """Whether it is a task's of this start, or of one of the starts before it; never of a later one."""
    if not name.startswith(f"{prefix}."):
        return False
    found = _NAME.fullmatch(name[len(prefix) + 1 :])
    return found is not None and (epoch - int(found[1])) % GENERATIONS < _OLDER
