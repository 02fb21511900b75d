"""Compiled modules are kept, even where Python is told to write none: the tests' and what they start."""

from __future__ import annotations

import os
import sys

from support.processes.lab import lab_dir


def keep_bytecode() -> None:
    """Where Python is told to write no bytecode, write it beside the lab.

    A broker that compiles its modules at every start needs twice the time to be up, and each test process
    would compile a thousand files before it runs its first test.
    """
    if os.environ.pop("PYTHONDONTWRITEBYTECODE", None):
        sys.dont_write_bytecode = False
        sys.pycache_prefix = os.environ["PYTHONPYCACHEPREFIX"] = str(lab_dir() / "bytecode")
