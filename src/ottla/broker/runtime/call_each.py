"""Calls several callbacks; an exception in one does not keep the others from being called."""

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import Any


def call_each(calls: Iterable[Callable[..., None]], *arguments: Any) -> None:
    """Call all of them, in their order; what one of them raises is raised when all were called."""
    with ExitStack() as stack:
        for call in reversed(list(calls)):
            stack.callback(call, *arguments)
