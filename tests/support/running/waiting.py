"""Waiting for a condition of another process, with a limit and a name."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_until(
    condition: Callable[[], T | None],
    what: str | Callable[[], str],
    seconds_max: float = 30,
    every: float = 0.05,
) -> T:
    """The first true value of ``condition``; an AssertionError that names ``what`` after the limit.

    Where ``what`` tells how things stand, it is a function: it is asked when the limit has passed."""
    deadline = time.monotonic() + seconds_max
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() >= deadline:
            named = what if isinstance(what, str) else what()
            raise AssertionError(f"waited {seconds_max:g} s in vain: {named}")
        time.sleep(every)
