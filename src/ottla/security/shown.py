"""Texts that come from strangers, as they may stand in a log line."""

from typing import Final

LETTERS_MAX: Final = 200


def shown(text: str) -> str:
    """Short, and without control characters."""
    plain = text.encode("unicode_escape").decode()
    return plain if len(plain) <= LETTERS_MAX else f"{plain[:LETTERS_MAX]}…"
