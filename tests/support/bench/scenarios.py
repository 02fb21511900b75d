"""Text scenarios: commands, a line of dashes, and what happened, block by block.

    elect 1 epoch=5
    write 1 count=3
    ----
    broker 1 leads from 0

A block ends at an empty line; lines that begin with ``#`` are for the reader. Run with
``OTTLA_REWRITE=1`` the files are written anew with what happens now: read the difference before
keeping it.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

DASHES = "----"
NOTHING = "nothing"


class World(Protocol):
    """What a scenario is played in."""

    def run(self, command: str) -> list[str]:
        """Carry out one command and tell what happened, one line each."""
        ...


def scenario_files(folder: Path) -> list[Path]:
    """All scenarios of a folder, in the order of their names; having none is an error."""
    found = sorted(folder.glob("*.txt"))
    assert found, f"no scenario in {folder}"
    return found


def check_scenario(path: Path, make_world: Callable[[], World]) -> None:
    """Play one file in a fresh world and compare, or write down what happened."""
    recorded = path.read_text(encoding="utf-8")
    played = play(recorded, make_world())
    if os.environ.get("OTTLA_REWRITE") == "1":
        path.write_text(played, encoding="utf-8")
    else:
        assert played == recorded, f"{path.name} tells another story (OTTLA_REWRITE=1 records the new one)"


def play(text: str, world: World) -> str:
    """The same text with what happened in place of what was expected."""
    return "\n\n".join(_play_block(block, world) for block in text.strip("\n").split("\n\n")) + "\n"


def _play_block(block: str, world: World) -> str:
    commands = block.split(f"\n{DASHES}")[0].splitlines()
    if all(line.startswith("#") for line in commands):
        return block
    happened = [line for command in commands if not command.startswith("#") for line in world.run(command)]
    return "\n".join([*commands, DASHES, *(happened or [NOTHING])])
