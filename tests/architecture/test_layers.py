"""The import contracts hold, cover every package, and would notice a breach."""

from __future__ import annotations

import configparser
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from architecture.sources import PACKAGE, ROOT, python_files, shown

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


def words_of(contract: str, field: str) -> list[str]:
    """The names that one field of a contract lists."""
    read = configparser.ConfigParser()
    read.read(CONTRACTS)
    return read[f"importlinter:contract:{contract}"][field].split()


def test_contracts_hold() -> None:
    kept, said = lint(ROOT)

    assert kept, said


def test_every_package_is_under_a_contract_or_known_to_do_input_and_output() -> None:
    packages = {entry.name for entry in PACKAGE.iterdir() if (entry / "__init__.py").exists()}
    governed = set.union(*map(packages_of, ("pure", "synchronous", "clients", "insight", "console")))

    assert packages - governed == {"cli", "client", "launch", "server", "testing"}


def test_every_room_of_the_broker_is_kept_from_the_node() -> None:
    rooms = {entry.name for entry in (PACKAGE / "broker").iterdir() if (entry / "__init__.py").exists()}

    assert {name.split(".")[2] for name in words_of("rooms", "source_modules")} == rooms - {"apis"}


BREACHES = [
    ("model/clock_in_model.py", "import time"),
    ("controller/chance_in_controller.py", "from random import Random"),
    ("zookeeper/socket_in_zookeeper.py", "import socket"),
    ("broker/asyncio_in_broker.py", "import asyncio"),
    ("broker/replicas/node_in_replicas.py", "from ottla.broker.node import Node"),
    ("broker/runtime/peers_in_runtime.py", "import ottla.broker.peers.links"),
    ("broker/server_in_broker.py", "from ottla.server import app"),
    ("model/config_in_model.py", "import ottla.config.log"),
    ("storage/sibling_in_storage.py", "import ottla.replication.leader"),
    ("server/oracle_in_server.py", "import kazoo.client"),
    ("insight/clock_in_insight.py", "import time"),
    ("insight/edge_in_insight.py", "import ottla.client.blocking.client"),
    ("console/broker_in_console.py", "import ottla.broker.node"),
    ("nowhere/__init__.py", "import json"),
]


@pytest.fixture(scope="module")
def said_of_breaches(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What is said of a copy of the package in which every contract is broken."""
    copy = tmp_path_factory.mktemp("broken")
    shutil.copytree(PACKAGE, copy / "src" / "ottla", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(CONTRACTS, copy)
    for file, line in BREACHES:
        target = copy / "src" / "ottla" / file
        target.parent.mkdir(exist_ok=True)
        target.write_text(f"{line}\n")
    kept, said = lint(copy)
    assert not kept
    return said


@pytest.mark.parametrize(("file", "line"), BREACHES)
def test_breach_is_noticed(said_of_breaches: str, file: str, line: str) -> None:
    module = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    assert f"ottla.{module}" in said_of_breaches or f"- {module}" in said_of_breaches


def test_every_file_is_in_a_package_with_a_place_in_the_layers() -> None:
    alone = [shown(file) for file in python_files("src/ottla") if file.parent == PACKAGE]

    assert alone == ["src/ottla/__init__.py"]
