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
        ("CLUSTER_STAMP", tmp_path / ".venv" / "cluster-stamp"),
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
    assert not setup.is_current(setup.STAMP)

    for name in ("python", "ottla"):
        (programs / name).touch()
    setup.STAMP.write_text(json.dumps({"fingerprint": setup.fingerprint(), "python": "3.12"}))
    assert setup.is_current(setup.STAMP)

    monkeypatch.setenv("PYTHON", str(a_python(tmp_path / "bin", "another", "3 13")))
    assert not setup.is_current(setup.STAMP), "another Python was asked for"
    monkeypatch.setenv("PYTHON", str(a_python(tmp_path / "bin", "same", "3 12")))
    assert setup.is_current(setup.STAMP)

    lock.write_text("one==2\n")
    assert not setup.is_current(setup.STAMP)


def test_broken_stamp_means_set_up_again(setup: ModuleType) -> None:
    setup.STAMP.parent.mkdir()
    setup.STAMP.write_text("{ not json")

    assert not setup.is_current(setup.STAMP)


@pytest.fixture
def stages(setup: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """What set-up would do, in words; every stage ends well."""
    done: list[str] = []
    programs = tmp_path / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name in ("python", "ottla"):
        (programs / name).touch()

    def note(stamp: Path, word: str) -> None:
        done.append(word)
        setup.write_stamp(stamp, (3, 12))

    monkeypatch.setattr(setup, "INPUTS", ())
    monkeypatch.setattr(setup, "set_up_cluster", lambda is_alone: note(setup.CLUSTER_STAMP, "cluster"))
    monkeypatch.setattr(setup, "set_up_the_rest", lambda: note(setup.STAMP, "rest"))
    return done


def test_the_cluster_comes_first_and_no_stage_is_done_twice(setup: ModuleType, stages: list[str]) -> None:
    setup.set_up(cluster_only=True)
    assert stages == ["cluster"]
    setup.set_up(cluster_only=True)
    assert stages == ["cluster"]

    setup.set_up()
    assert stages == ["cluster", "rest"]
    setup.set_up()
    setup.set_up(cluster_only=True)
    assert stages == ["cluster", "rest"]


def test_a_stage_that_was_interrupted_is_done_again(
    setup: ModuleType, stages: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = setup.set_up_the_rest

    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(setup, "set_up_the_rest", interrupted)
    with pytest.raises(KeyboardInterrupt):
        setup.set_up()
    monkeypatch.setattr(setup, "set_up_the_rest", whole)

    setup.set_up()

    assert stages == ["cluster", "rest"], "and the first stage is not"


def test_large_downloads_tell_how_far_they_are(setup: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    lines = ["Collecting pyspark", *(f"Progress {done}000000 of 400000000" for done in range(0, 401, 10))]

    assert setup.pip_in_lines(["printf", "%s\\n", *lines, "Progress 5 of 10"]) == 0

    told = capsys.readouterr().out.splitlines()
    assert told == ["Collecting pyspark", *(f"set-up: {done} of 400 MB" for done in range(40, 401, 40))]
