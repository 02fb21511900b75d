"""What ``make setup`` says before it fetches anything."""

from __future__ import annotations

import ast
import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).resolve().parents[3] / "tools" / "setup.py"


@pytest.fixture
def setup(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """The script as a module that believes in an empty clone of its own."""
    spec = importlib.util.spec_from_file_location("ottla_setup", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.delenv("PYTHON", raising=False)
    for name, value in (
        ("ROOT", tmp_path),
        ("VENV", tmp_path / ".venv"),
        ("STAMP", tmp_path / ".venv" / "stamp"),
    ):
        monkeypatch.setattr(module, name, value)
    return module


def a_python(directory: Path, name: str, version: str) -> Path:
    """A program that answers the question for its version, and nothing else."""
    directory.mkdir(exist_ok=True)
    program = directory / name
    program.write_text(f'#!/bin/sh\ncase "$2" in *version_info*) echo {version};; *) exit 1;; esac\n')
    program.chmod(0o755)
    return program


def test_script_can_be_read_by_a_python_that_is_too_old_for_ottla() -> None:
    ast.parse(SCRIPT.read_text(), feature_version=(3, 7))


@pytest.mark.parametrize(
    ("oldest", "newest", "word"), [((4, 0), (4, 2), "older"), ((3, 5), (3, 6), "newer")], ids=["old", "new"]
)
def test_unfit_python_is_refused_with_the_one_to_install(
    setup: ModuleType, monkeypatch: pytest.MonkeyPatch, oldest: object, newest: tuple[int, int], word: str
) -> None:
    monkeypatch.setattr(setup, "OLDEST", oldest)
    monkeypatch.setattr(setup, "NEWEST", newest)
    monkeypatch.setenv("PATH", "")

    with pytest.raises(setup.SetupRefused) as refused:
        setup.choose_python()

    own = f"{sys.version_info[0]}.{sys.version_info[1]}"
    name = f"{newest[0]}.{newest[1]}"
    assert f"python3 is {own}, {word} than what Ottla works with" in str(refused.value)
    assert f"install Python {name} and run: make setup PYTHON=python{name}" in str(refused.value)


def test_fit_python_on_the_path_is_taken_where_this_one_is_not_fit(
    setup: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = a_python(tmp_path / "bin", "python3.77", "3 77")
    monkeypatch.setattr(setup, "OLDEST", (3, 77))
    monkeypatch.setattr(setup, "NEWEST", (3, 78))
    monkeypatch.setenv("PATH", str(program.parent))

    assert setup.choose_python() == (str(program), (3, 77))


def test_python_of_a_working_environment_is_kept(setup: ModuleType, tmp_path: Path) -> None:
    (tmp_path / ".venv").mkdir()
    program = a_python(tmp_path / ".venv" / "bin", "python", "3 12")

    assert setup.choose_python() == (str(program), (3, 12))


def test_python_named_by_hand_is_checked(
    setup: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PYTHON", str(a_python(tmp_path / "bin", "python", "3 99")))
    with pytest.raises(setup.SetupRefused, match=r"is 3\.99, but Ottla works with"):
        setup.choose_python()

    monkeypatch.setenv("PYTHON", str(tmp_path / "absent"))
    with pytest.raises(setup.SetupRefused, match="does not start"):
        setup.choose_python()


def test_python_without_ensurepip_is_refused_with_the_package_to_install(
    setup: ModuleType, tmp_path: Path
) -> None:
    bare = a_python(tmp_path / "bin", "python", "3 12")

    with pytest.raises(setup.SetupRefused, match=r"apt-get install python3\.12-venv"):
        setup.check_venv_module(str(bare), (3, 12))


@pytest.mark.parametrize(
    ("share", "remedy"),
    [
        ("VENV_BYTES", "clone to a roomier disk"),
        ("TEMP_BYTES", "TMPDIR=/path/to/it make setup"),
        ("CACHE_BYTES", "XDG_CACHE_HOME=/path/to/it make setup"),
    ],
)
def test_want_of_space_is_refused_with_what_is_free_and_a_way_out(
    setup: ModuleType, monkeypatch: pytest.MonkeyPatch, share: str, remedy: str
) -> None:
    for name in ("VENV_BYTES", "TEMP_BYTES", "CACHE_BYTES"):
        monkeypatch.setattr(setup, name, 2**60 if name == share else 0)

    with pytest.raises(setup.SetupRefused) as refused:
        setup.check_space()

    assert "GiB free, and set-up needs 1073741824.0 there" in str(refused.value)
    assert remedy in str(refused.value)


def test_set_up_clone_is_current_until_something_it_depends_on_changes(
    setup: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    lock = tmp_path / "lock"
    lock.write_text("one==1\n")
    monkeypatch.setattr(setup, "INPUTS", (lock,))
    programs = tmp_path / ".venv" / "bin"
    programs.mkdir(parents=True)
    assert not setup.is_current()

    for name in ("python", "ottla"):
        (programs / name).touch()
    setup.STAMP.write_text(json.dumps({"fingerprint": setup.fingerprint(), "python": "3.12"}))
    assert setup.is_current()

    monkeypatch.setenv("PYTHON", str(a_python(tmp_path / "bin", "another", "3 13")))
    assert not setup.is_current(), "another Python was asked for"
    monkeypatch.setenv("PYTHON", str(a_python(tmp_path / "bin", "same", "3 12")))
    assert setup.is_current()

    lock.write_text("one==2\n")
    assert not setup.is_current()


def test_broken_stamp_means_set_up_again(setup: ModuleType) -> None:
    setup.STAMP.parent.mkdir()
    setup.STAMP.write_text("{ not json")

    assert not setup.is_current()
