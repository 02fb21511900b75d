"""The built wheel, as somebody installs it: in a virtual environment without the clone."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("wheel")
    pip = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation")
    run(*pip, "--wheel-dir", directory, ROOT, cwd=directory)
    [built] = directory.glob("ottla-*.whl")
    return built


@pytest.fixture(scope="module")
def clean(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel in an environment of its own; what it depends on is borrowed from this one."""
    directory = tmp_path_factory.mktemp("clean")
    venv.create(directory / "venv", with_pip=False, symlinks=True)
    python = directory / "venv" / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index")
    run(*pip, wheel, cwd=directory)
    site = Path(
        run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=directory).strip()
    )
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return directory / "venv" / "bin"


def test_it_holds_the_package_and_nothing_of_the_clone(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()

    assert {name.split("/")[0].split("-")[0] for name in names} == {"ottla", "pyspark_ottla"}
    assert "ottla/py.typed" in names


def test_the_start_page_can_be_followed_with_the_wheel_alone(clean: Path, tmp_path: Path) -> None:
    where = run(clean / "python", "-c", "import ottla; print(ottla.__file__)", cwd=tmp_path).strip()
    assert Path(where).is_relative_to(clean.parent), "not the clone's"
    ottla = clean / "ottla"
    assert run(ottla, "--version", cwd=tmp_path).startswith("ottla ")

    run(ottla, "up", "--detach", "--port", "0", cwd=tmp_path)
    try:
        made = run(ottla, "topics", "--create", "--topic", "orders", "--partitions", "3", cwd=tmp_path)
        assert "Created topic orders." in made
        assert "orders" in run(ottla, "topics", "--list", cwd=tmp_path)
        assert "controller" in run(ottla, "describe", cwd=tmp_path)
    finally:
        run(ottla, "down", cwd=tmp_path)
