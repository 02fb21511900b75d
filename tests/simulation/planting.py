"""How a rule of the product is replaced by a wrong one, and put back afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any


@contextmanager
def replaced(owner: Any, name: str, mutant: Any) -> Iterator[None]:
    original = owner.__dict__[name]
    setattr(owner, name, mutant)
    try:
        yield
    finally:
        setattr(owner, name, original)


@contextmanager
def all_of(*replaced: Any) -> Iterator[None]:
    with ExitStack() as stack:
        for each in replaced:
            stack.enter_context(each)
        yield
