"""The files that the architecture tests read."""

from __future__ import annotations

import ast
import shutil
import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "ottla"
PYTHON_ROOTS = ("src", "tests", "tools", "bench")


@cache
def python_files(*roots: str) -> tuple[Path, ...]:
    """Every Python file below these directories of the clone; all of ours where none is named."""
    return tuple(
        file
        for root in roots or PYTHON_ROOTS
        for file in sorted((ROOT / root).rglob("*.py"))
        if not any(part.startswith(".") for part in file.relative_to(ROOT).parts)
    )


@cache
def tree(file: Path) -> ast.Module:
    """The syntax tree of a file."""
    return ast.parse(file.read_text(encoding="utf-8"), str(file))


def imported_names(file: Path) -> set[str]:
    """The modules that a file imports, by their full names."""
    found: set[str] = set()
    for node in ast.walk(tree(file)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found.add(node.module)
    return found


def shown(file: Path) -> str:
    """A file's place in the clone."""
    return str(file.relative_to(ROOT))


@cache
def tracked_files() -> tuple[Path, ...]:
    """The files under version control; the Python files where there is no git."""
    if shutil.which("git") is None:
        return python_files()
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.split("\0")
    named = [ROOT / name for name in listed if name]
    return tuple(file for file in named if file.is_file()) or python_files()
