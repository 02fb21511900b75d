"""What the programs in Python share: commands in, one answer each."""

from __future__ import annotations

import sys
from collections.abc import Callable

LAST = "last"
"""A reader stops behind the record with this value."""


def settings_of(words: list[str]) -> dict[str, str]:
    """Settings, given as ``name=value``."""
    return dict(word.split("=", 1) for word in words)


def obey_all(obey: Callable[[list[str]], object], refusals: tuple[type[Exception], ...]) -> None:
    """``obey`` gets the words of a command; what it returns was found."""
    for line in sys.stdin:
        try:
            found = obey(line.split())
            say("done" if found is None else f"found {found}")
        except refusals as refused:
            say(f"refused {named(refused)}")


def named(refused: Exception) -> str:
    return " ".join(f"{type(refused).__name__} {refused}".split())


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
