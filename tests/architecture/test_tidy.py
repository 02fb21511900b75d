"""Habits that a machine can check, so that no review has to."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

from architecture.sources import (
    PACKAGE,
    PYTHON_ROOTS,
    ROOT,
    imported_names,
    python_files,
    shown,
    tracked_files,
    tree,
)

FILE_LINES_MAX = 500
FUNCTION_LINES_MAX = 50
PACKAGE_MODULES_MAX = 12
ONE_MODULE_AN_API = PACKAGE / "wire" / "apis"
UNFINISHED = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "X" + "XX", "HA" + "CK"]) + r")\b")
PLACES_OF_ONE_MACHINE = re.compile(r"/(root|home/\w+|work|Users)/")
BINARY_SUFFIXES = {".bin", ".gz", ".jar", ".png", ".jks", ".p12", ".log", ".index", ".timeindex"}


def text_files() -> list[Path]:
    """What people read, except this file, which has to name what it looks for."""
    here = Path(__file__).name
    return [file for file in tracked_files() if file.suffix not in BINARY_SUFFIXES and file.name != here]


def test_every_module_says_what_it_is_for() -> None:
    silent = [
        shown(file)
        for file in python_files()
        if file.read_text(encoding="utf-8").strip() and not ast.get_docstring(tree(file))
    ]

    assert silent == []


def test_nothing_unfinished_is_left_in_the_code() -> None:
    found = [
        f"{shown(file)}:{number}: {line.strip()}"
        for file in python_files()
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        if UNFINISHED.search(line)
    ]

    assert found == []


def test_nothing_names_a_place_of_one_machine() -> None:
    found = []
    for file in text_files():
        try:
            lines = file.read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError:
            continue
        found += [f"{shown(file)}: {line.strip()}" for line in lines if PLACES_OF_ONE_MACHINE.search(line)]

    assert found == []


def test_only_the_edge_catches_everything() -> None:
    found = [
        f"{shown(file)}:{node.lineno}"
        for file in python_files("src")
        if not file.is_relative_to(PACKAGE / "server")
        for node in ast.walk(tree(file))
        if isinstance(node, ast.ExceptHandler) and catches_everything(node)
    ]

    assert found == [], "name the errors you expect; only server/ may catch Exception"


def catches_everything(handler: ast.ExceptHandler) -> bool:
    """A bare ``except`` or ``except Exception`` that does not raise again."""
    if handler.type is not None and ast.unparse(handler.type) not in ("Exception", "BaseException"):
        return False
    return not any(isinstance(node, ast.Raise) and node.exc is None for node in ast.walk(handler))


def test_no_file_grows_beyond_what_one_can_read() -> None:
    long = {shown(file): count for file in python_files() if (count := line_count(file)) > FILE_LINES_MAX}

    assert long == {}, f"over {FILE_LINES_MAX} lines: which second thing does the file do?"


def line_count(file: Path) -> int:
    return len(file.read_text(encoding="utf-8").splitlines())


def test_no_function_grows_beyond_what_one_can_read() -> None:
    long = {
        f"{shown(file)}:{node.name}": size
        for file in python_files("src", "tools")
        for node in ast.walk(tree(file))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (size := (node.end_lineno or node.lineno) - node.body[0].lineno + 1) > FUNCTION_LINES_MAX
    }

    assert long == {}, f"over {FUNCTION_LINES_MAX} lines: which second thing does the function do?"


def test_no_package_grows_beyond_what_one_can_survey() -> None:
    modules = Counter(
        file.parent for file in python_files("src", "tests/support") if file.name != "__init__.py"
    )

    large = {
        shown(package): count
        for package, count in modules.items()
        if count > PACKAGE_MODULES_MAX and package != ONE_MODULE_AN_API
    }

    assert large == {}, f"over {PACKAGE_MODULES_MAX} modules: which rooms does the package have?"


def test_tests_use_fakes_and_never_mocks() -> None:
    found = [shown(file) for file in python_files("tests") if "unittest.mock" in imported_names(file)]

    assert found == []


def test_unit_tests_never_sleep() -> None:
    found = [
        f"{shown(file)}:{node.lineno}"
        for file in python_files("tests/unit", "tests/scenarios")
        for node in ast.walk(tree(file))
        if (isinstance(node, ast.Call) and ast.unparse(node.func) == "time.sleep")
        or (isinstance(node, ast.ImportFrom) and ast.unparse(node) == "from time import sleep")
    ]

    assert found == []


def test_test_names_are_not_repeated_within_a_file() -> None:
    repeated = []
    for file in python_files("tests"):
        names = [node.name for node in tree(file).body if isinstance(node, ast.FunctionDef)]
        repeated += [f"{shown(file)}:{name}" for name in set(names) if names.count(name) > 1]

    assert repeated == [], "the second of the two is the only one that runs"


@pytest.mark.parametrize("root", PYTHON_ROOTS[:3])
def test_python_roots_exist(root: str) -> None:
    assert (ROOT / root).is_dir()
