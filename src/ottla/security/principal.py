"""Who a client is, once that is known."""

from typing import Final, NamedTuple


class Principal(NamedTuple):
    """``User:alice``."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


ANONYMOUS: Final = Principal("User", "ANONYMOUS")
"""Everybody on a listener that asks nobody for a name."""
