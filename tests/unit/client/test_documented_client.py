"""The page about the client names what there is; that its programs run is tested with a cluster."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

from support.running.documented import programs_of

_ROW = re.compile(r"^\| `(ottla\.client[\w.]*)` \| (.*) \|$", re.MULTILINE)
_NAME = re.compile(r"`(\w+)`")


def test_what_the_programs_import_is_there(repository: Path) -> None:
    programs = programs_of(repository / "docs" / "client.md")
    imports = [
        (node.module, name.name)
        for program in programs
        for node in ast.walk(ast.parse(program))
        if isinstance(node, ast.ImportFrom)
        for name in node.names
    ]

    assert len(programs) == 7
    assert [pair for pair in imports if not hasattr(importlib.import_module(pair[0] or ""), pair[1])] == []


def test_the_operations_named_are_there(repository: Path) -> None:
    rows = _ROW.findall((repository / "docs" / "client.md").read_text(encoding="utf-8"))
    named = [(module, name) for module, names in rows for name in _NAME.findall(names)]

    assert len(named) > 15
    assert [pair for pair in named if not hasattr(importlib.import_module(pair[0]), pair[1])] == []
