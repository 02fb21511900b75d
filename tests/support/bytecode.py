"""Processes that tests start find their modules compiled, as an installed Ottla does."""

from __future__ import annotations

import os

from support.lab import lab_dir


def keep_bytecode() -> None:
    """Where Python is told to write no bytecode, let our children write theirs beside the lab.

    A broker that compiles its modules at every start needs twice the time to be up.
    """
    if os.environ.pop("PYTHONDONTWRITEBYTECODE", None):
        os.environ["PYTHONPYCACHEPREFIX"] = str(lab_dir() / "bytecode")
