"""The import contracts hold, cover every package, and would notice a breach."""

from __future__ import annotations

import configparser
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from architecture.sources import PACKAGE, ROOT, imported_names, python_files, shown

CONTRACTS = ROOT / ".importlinter"


def lint(directory: Path) -> tuple[bool, str]:
    """Whether the contracts hold for the package below a directory, and what was said."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); from importlinter.cli import lint_imports; "
        "sys.exit(lint_imports(config_filename=sys.argv[2], cache_dir=None))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(directory / "src"), str(directory / ".importlinter")],
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode == 0, done.stdout + done.stderr


def packages_of(contract: str) -> set[str]:
    """The packages that a contract of forbidden imports speaks for."""
    return {name.split(".")[1] for name in words_of(contract, "source_modules")}


def forbidden_by(contract: str) -> set[str]:
    """The modules that it forbids."""
    return set(words_of(contract, "forbidden_modules"))


def words_of(contract: str, field: str) -> list[str]:
    """The names that one field of a contract lists."""
    read = configparser.ConfigParser()
    read.read(CONTRACTS)
    return read[f"importlinter:contract:{contract}"][field].split()


def test_contracts_hold() -> None:
    kept, said = lint(ROOT)

    assert kept, said


@pytest.mark.parametrize("contract", ["pure", "synchronous"])
def test_package_files_themselves_keep_the_contract(contract: str) -> None:
    """The contracts name modules inside packages; the packages' own ``__init__`` files are looked at here."""
    forbidden = forbidden_by(contract)
    breaches = {
        shown(file): wrong
        for package in packages_of(contract)
        for file in (PACKAGE / package).rglob("*.py")
        if (wrong := sorted({name.partition(".")[0] for name in imported_names(file)} & forbidden))
    }

    assert breaches == {}


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The package and its contracts, to be broken."""
    shutil.copytree(PACKAGE, tmp_path / "src" / "ottla", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(CONTRACTS, tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("model/new.py", "import time"),
        ("controller/new.py", "from random import Random"),
        ("zookeeper/new.py", "import socket"),
        ("broker/new.py", "import asyncio"),
        ("broker/new.py", "from ottla.server import app"),
        ("model/new.py", "import ottla.config.log"),
        ("storage/new.py", "import ottla.replication.leader"),
        ("server/new.py", "import kazoo.client"),
        ("nowhere/__init__.py", "import json"),
    ],
)
def test_breach_is_noticed(copy: Path, file: str, line: str) -> None:
    target = copy / "src" / "ottla" / file
    target.parent.mkdir(exist_ok=True)
    target.write_text(f"{line}\n")

    kept, said = lint(copy)

    assert not kept
    assert file.partition("/")[0] in said


def test_every_file_is_in_a_package_with_a_place_in_the_layers() -> None:
    alone = [shown(file) for file in python_files("src/ottla") if file.parent == PACKAGE]

    assert alone == ["src/ottla/__init__.py"]
