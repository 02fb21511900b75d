"""A document's programs and commands, and whether what a command prints is like what is shown."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

_BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
_PROGRAM = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
_VARIES = re.compile(r"\d+")
ANYTHING = "..."


@dataclass(slots=True)
class Typed:
    """A command line, and the lines that the document shows after it."""

    command: str
    shown: list[str] = field(default_factory=list)


def commands_of(document: Path) -> list[Typed]:
    """In the document's order."""
    typed: list[Typed] = []
    for block in _BLOCK.findall(document.read_text(encoding="utf-8")):
        for line in block.splitlines():
            if line.startswith("$ "):
                typed.append(Typed(line.removeprefix("$ ")))
            elif line.strip():
                typed[-1].shown.append(line)
    return typed


def programs_of(document: Path) -> list[str]:
    """Its blocks of Python, in the document's order."""
    return _PROGRAM.findall(document.read_text(encoding="utf-8"))


def missing(shown: list[str], printed: str) -> list[str]:
    """Lines of the document that do not come, in their order, in what was printed.

    Three dots stand for anything, numbers for any number, and blanks for any blanks; a line may be cut short.
    """
    lines = printed.splitlines()
    absent = []
    for wanted in shown:
        like = _like(wanted)
        position = next((number for number, line in enumerate(lines) if like.match(line)), None)
        if position is None:
            absent.append(wanted)
        else:
            lines = lines[position + 1 :]
    return absent


def _like(line: str) -> re.Pattern[str]:
    parts = [_words(part) for part in line.rstrip().split(ANYTHING)]
    return re.compile(".*".join(parts))


def _words(text: str) -> str:
    words = [_VARIES.sub("\0", word) for word in re.split(r"\s+", text)]
    return r"\s+".join(re.escape(word).replace("\0", r"-?\d+").replace("\\\0", r"-?\d+") for word in words)
