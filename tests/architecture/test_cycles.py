"""Modules that import each other can only be understood together: keep such groups small."""

from __future__ import annotations

import ast
from pathlib import Path

from architecture.sources import PACKAGE, python_files, tree

MODULES_MAX = 4


def test_no_import_cycle_is_larger_than_one_can_read_at_once() -> None:
    graph = import_graph()

    large = [sorted(group) for group in strong_components(graph) if len(group) > MODULES_MAX]

    assert large == [], f"more than {MODULES_MAX} modules import each other"


def test_a_cycle_is_found_whole() -> None:
    graph = {"a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "d": {"e"}, "e": set()}

    assert sorted(map(sorted, strong_components(graph))) == [["a", "b", "c"], ["d"], ["e"]]


def test_imports_for_types_and_within_functions_count() -> None:
    graph = import_graph()

    assert "ottla.cli.local.demo" in graph["ottla.cli.local.up"], "imported for its type, and in a function"


def test_below_the_handlers_nothing_of_the_broker_imports_the_node() -> None:
    knowing = [
        name
        for name, others in import_graph().items()
        if name.startswith("ottla.broker.") and "ottla.broker.node" in others
    ]

    assert knowing, "handlers get the node"
    assert [name for name in knowing if not name.startswith("ottla.broker.apis.")] == []


def import_graph() -> dict[str, set[str]]:
    """The modules of the package, and which of them each imports anywhere in its text."""
    modules = {name_of(file): file for file in python_files("src") if file.is_relative_to(PACKAGE)}
    return {name: imported(file, modules.keys()) - {name} for name, file in modules.items()}


def name_of(file: Path) -> str:
    parts = file.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(file: Path, modules: set[str]) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree(file)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            members = {f"{node.module}.{alias.name}" for alias in node.names}
            names |= {member if member in modules else node.module for member in members}
    return names & modules


def strong_components(graph: dict[str, set[str]]) -> list[set[str]]:
    """Groups in which everything reaches everything else (Tarjan)."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: list[set[str]] = []

    def visit(name: str) -> None:
        number[name] = lowest[name] = len(number)
        stack.append(name)
        for other in graph[name]:
            if other not in number:
                visit(other)
                lowest[name] = min(lowest[name], lowest[other])
            elif other in stack:
                lowest[name] = min(lowest[name], number[other])
        if lowest[name] == number[name]:
            at = stack.index(name)
            found.append(set(stack[at:]))
            del stack[at:]

    for name in graph:
        if name not in number:
            visit(name)
    return found
