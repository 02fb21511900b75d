"""The command line's frame: fast, complete, and short in its refusals."""

import importlib
import json
import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

from ottla.cli import main as frame
from ottla.launch.refusal import LaunchRefused

SLOW_MODULES = ("asyncio", "uvloop", "msgspec", "numpy", "pyspark", "pyarrow", "numba", "kazoo", "cramjam")


def test_help_names_every_command_with_its_purpose() -> None:
    shown = CliRunner().invoke(frame.app, ["--help"], env={"COLUMNS": "200"})

    assert shown.exit_code == 0
    for name in frame.COMMANDS:
        assert name in shown.output


@pytest.mark.parametrize("name", frame.COMMANDS)
def test_every_command_has_help_of_its_own(name: str) -> None:
    command = typer.main.get_command(importlib.import_module(frame.COMMANDS[name]).app)

    assert command.help, f"ottla {name} says what it is for"


def test_help_imports_nothing_that_is_slow() -> None:
    code = (
        "import json, sys\n"
        "from typer.testing import CliRunner\n"
        "from ottla.cli.main import app\n"
        "before = set(sys.modules)\n"
        "assert CliRunner().invoke(app, ['--help']).exit_code == 0\n"
        "print(json.dumps(sorted(set(sys.modules))))"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    assert [module for module in SLOW_MODULES if module in json.loads(printed)] == []


def test_version_is_the_installed_one() -> None:
    shown = CliRunner().invoke(frame.app, ["--version"])

    assert shown.output.startswith("ottla ")
    assert shown.output.strip().removeprefix("ottla ")[0].isdigit()


def test_unknown_command_is_a_usage_error_that_names_the_one_that_was_meant() -> None:
    shown = CliRunner().invoke(frame.app, ["zookeper"])

    assert shown.exit_code == 2
    assert "Did you mean 'zookeeper'" in shown.output


def test_refusal_is_one_sentence_on_standard_error_and_exit_code_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(arguments: list[str] | None, prog_name: str) -> None:
        raise LaunchRefused("the port is taken; choose another")

    monkeypatch.setattr(frame, "app", refuse)

    with pytest.raises(SystemExit) as ended:
        frame.main()

    assert ended.value.code == 1
    assert capsys.readouterr().err == "ottla: the port is taken; choose another\n"
