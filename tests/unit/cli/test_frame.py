"""The command line's frame: fast, complete, and short in its refusals."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from ottla.cli import main as frame
from ottla.cli.local.state import next_command
from ottla.cli.local.up import require_known
from ottla.cli.purposes import SECTIONS, TOOLS
from ottla.cli.shared.refusal import UsageRefused
from ottla.launch.refusal import LaunchRefused
from support.processes.commands import run_here

SLOW_MODULES = ("asyncio", "uvloop", "msgspec", "numpy", "pyspark", "pyarrow", "numba", "kazoo", "cramjam")


def test_help_names_every_command_with_its_purpose() -> None:
    shown = CliRunner().invoke(frame.app, ["--help"], env={"COLUMNS": "80"})
    purposes = {name: purpose for section in SECTIONS.values() for name, purpose in section.items()}

    assert shown.exit_code == 0
    assert set(purposes) == set(frame.COMMANDS)
    for name, purpose in purposes.items():
        assert re.search(rf"^  {name} +{re.escape(purpose)}$", shown.output, re.MULTILINE)


def all_calls() -> list[tuple[str, ...]]:
    """Every command, and those below it."""
    found = []

    def collect(call: tuple[str, ...], command: Any) -> None:
        found.append(call)
        for name, below in getattr(command, "commands", {}).items():
            collect((*call, name), below)

    for name in frame.COMMANDS:
        collect((name,), typer.main.get_command(frame.application(name)))
    return found


@pytest.mark.parametrize("call", all_calls(), ids=" ".join)
def test_every_command_has_help_with_an_example_that_fits(call: tuple[str, ...]) -> None:
    shown = CliRunner().invoke(frame.app, [*call, "--help"], env={"COLUMNS": "80"})
    before, _, example = shown.output.partition("Example")

    assert shown.exit_code == 0
    assert len(before.split("\n\n")) > 1, "it says what it is for"
    assert f"ottla {call[0]}" in " ".join(example.split())
    assert max(map(len, shown.output.splitlines())) <= 80


def test_an_example_is_broken_between_its_words_where_the_terminal_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "40")

    shown = frame.with_whole_words("Makes it.\n\nExample: `ottla topics --create --replication-factor 3`.")

    assert shown == "Makes it.\n\n\b\nExample: `ottla topics --create\n--replication-factor 3`."


@pytest.mark.parametrize("name", SECTIONS[TOOLS].keys() - {"perf"})
def test_kafkas_tools_tell_their_version_as_kafkas_do(name: str) -> None:
    shown = CliRunner().invoke(frame.app, [name, "--version"])

    assert shown.exit_code == 0
    assert shown.output.startswith("ottla ")


def test_what_is_no_number_is_told_in_plain_words() -> None:
    shown = CliRunner().invoke(frame.app, ["kill", "x"])

    assert shown.exit_code == 2
    assert "'x' is not a valid number." in shown.output


@pytest.mark.parametrize(
    ("name", "words"),
    [("min.insync.replica", "did you mean min.insync.replicas?"), ("zzz", "`ottla configs --describe --all")],
)
def test_up_refuses_a_setting_that_is_none(name: str, words: str) -> None:
    with pytest.raises(UsageRefused, match=re.escape(words)):
        require_known(["min.insync.replicas", name])


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


def test_a_small_command_imports_only_what_it_uses() -> None:
    code = (
        "import json, sys\n"
        "from ottla.cli.main import main\n"
        "from ottla.cli.shared.connection import servers_here\n"
        "servers_here()\n"
        "try:\n"
        "    main(['topics', '--list', '--bootstrap-server', 'nowhere:x'])\n"
        "except SystemExit:\n"
        "    print(json.dumps(sorted(sys.modules)))"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    unused = (
        "asyncio", "crc32c", "cramjam", "email", "importlib.metadata", "numpy", "pydantic", "pyspark", "rich",
        "uvloop", "ottla.broker", "ottla.client.group", "ottla.client.producing", "ottla.launch.cluster",
    )  # fmt: skip

    assert [module for module in unused if module in json.loads(printed)] == []


def test_a_running_cluster_is_known_by_the_launchers_lock() -> None:
    from ottla.cli.local import state
    from ottla.launch import cluster

    assert state.LOCK_NAME == cluster.LOCK_NAME


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("ottla con", ["console", "console-producer", "console-consumer", "consumer-groups", "configs"]),
        ("ottla topics --rep", ["--replication-factor", "--replica-assignment"]),
        ("ottla leader-election --election-type ", ["PREFERRED", "UNCLEAN"]),
    ],
)
def test_the_shell_completes_commands_flags_and_values(typed: str, offered: list[str]) -> None:
    asked = {"_OTTLA_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" "))}
    command = [sys.executable, "-c", "from ottla.cli.main import main; main()"]

    done = subprocess.run(command, env={**os.environ, **asked}, capture_output=True, text=True, check=True)

    assert done.stdout.split() == offered


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


def test_a_directory_that_cannot_be_is_refused_before_anything_is_started(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    ran = run_here("up", "--detach", "--data-dir", str(tmp_path / "file"))

    assert ran.exit_code == 1
    assert ran.stderr.endswith("(File exists); choose another data directory\n")


def test_the_next_step_is_told_as_it_must_be_typed() -> None:
    assert next_command("down", Path("ottla-data")) == "`ottla down`"
    assert next_command("down", Path("ottla-data").absolute()) == "`ottla down`"
    assert next_command("restart 0", Path("/tmp/my data")) == "`ottla restart 0 --data-dir '/tmp/my data'`"
