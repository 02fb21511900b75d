"""The frame of the command line: the one list of commands, and how a refusal reaches the user.

A command's module holds ``app`` (or what is named after a colon), a Typer application, and imports what it
works with inside its functions.
``ottla --help`` imports none of them.
"""

import importlib
import io
import os
import shutil
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup, TyperOption

from ottla.cli.purposes import SECTIONS, TOOLS
from ottla.cli.shared.refusal import CommandRefused, UsageRefused
from ottla.launch.refusal import LaunchRefused

COMMANDS: dict[str, str] = {
    "up": "ottla.cli.local.up",
    "status": "ottla.cli.local.status",
    "down": "ottla.cli.local.down",
    "kill": "ottla.cli.local.faults:kill_app",
    "pause": "ottla.cli.local.faults:pause_app",
    "resume": "ottla.cli.local.faults:resume_app",
    "restart": "ottla.cli.local.faults:restart_app",
    "drill": "ottla.cli.drill.command",
    "describe": "ottla.cli.inspect.describe",
    "explain": "ottla.cli.inspect.explain",
    "watch": "ottla.cli.inspect.watch",
    "console": "ottla.cli.inspect.console",
    "doctor": "ottla.cli.inspect.doctor",
    "sim": "ottla.cli.simulation.command",
    "keeper": "ottla.cli.servers.keeper",
    "zookeeper": "ottla.cli.servers.zookeeper",
    "broker": "ottla.cli.servers.broker",
    "dump-log": "ottla.cli.dump_log.command",
    "topics": "ottla.cli.tools.topics.command",
    "leader-election": "ottla.cli.tools.reassign.leader_election",
    "preferred-replica-election": "ottla.cli.tools.reassign.preferred_replica_election",
    "console-producer": "ottla.cli.tools.console.producer",
    "console-consumer": "ottla.cli.tools.console.consumer",
    "consumer-groups": "ottla.cli.tools.groups.command",
    "transactions": "ottla.cli.tools.transactions.command",
    "get-offsets": "ottla.cli.tools.logs.get_offsets",
    "configs": "ottla.cli.tools.configs.command",
    "acls": "ottla.cli.tools.acls.command",
    "users": "ottla.cli.tools.users.command",
    "reassign-partitions": "ottla.cli.tools.reassign.command",
    "drain": "ottla.cli.tools.reassign.drain",
    "delete-records": "ottla.cli.tools.logs.delete_records",
    "log-dirs": "ottla.cli.tools.logs.log_dirs",
    "replica-verification": "ottla.cli.tools.logs.replica_verification",
    "perf": "ottla.cli.tools.perf.command",
    "cluster-id": "ottla.cli.tools.cluster.cluster_id",
    "broker-api-versions": "ottla.cli.tools.cluster.broker_api_versions",
    "zookeeper-shell": "ottla.cli.tools.zookeeper.shell",
    "kafka-scripts": "ottla.cli.tools.cluster.kafka_scripts",
    "pipeline": "ottla.cli.pipeline.command",
}

EXAMPLE_COLUMNS = 76
_NUMBERS = ("int", "int range", "float", "float range")
INTERRUPTED = 130
"""The exit code after Ctrl-C, as shells have it."""


class _Commands(TyperGroup):
    """Finds a command in the list above and imports its module."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        # Only the names, for "did you mean": the commands themselves come from get_command.
        names: Any = dict.fromkeys(COMMANDS)
        self.commands = names

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        width = max(map(len, COMMANDS))
        for title, purposes in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), purpose) for name, purpose in purposes.items()])

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return None
        below = application(cmd_name)
        below.rich_markup_mode = None
        command = typer.main.get_command(below)
        for one in _with_those_below(command):
            one.help = with_whole_words(one.help or "")
            for parameter in one.params:
                if parameter.type.name in _NUMBERS:
                    parameter.type.name = "number"
            if cmd_name in SECTIONS[TOOLS] and (one.params or not hasattr(one, "commands")):
                one.params.append(_version_option())
        command.name = cmd_name
        return command


def application(command: str) -> typer.Typer:
    """A command's Typer application; its module is imported."""
    module, _, name = COMMANDS[command].partition(":")
    found: typer.Typer = getattr(importlib.import_module(module), name or "app")
    return found


def _with_those_below(command: Any) -> Iterator[Any]:
    yield command
    for below in getattr(command, "commands", {}).values():
        yield from _with_those_below(below)


def with_whole_words(text: str) -> str:
    """A help text whose examples are not broken within their flags, where they could not be copied."""
    columns = min(EXAMPLE_COLUMNS, shutil.get_terminal_size().columns - 4)
    paragraphs = text.split("\n\n")
    for position, paragraph in enumerate(paragraphs):
        if paragraph.startswith("Example: "):
            words = " ".join(paragraph.split())
            lines = textwrap.wrap(words, columns, break_on_hyphens=False, break_long_words=False)
            paragraphs[position] = "\b\n" + "\n".join(lines)
    return "\n\n".join(paragraphs)


app = typer.Typer(
    name="ottla",
    cls=_Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # Half of the time to show the help would go into importing rich.
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        import importlib.metadata

        typer.echo(f"ottla {importlib.metadata.version('ottla')}")
        raise typer.Exit


def _version_option() -> TyperOption:
    """All of Kafka's tools have this flag."""
    return TyperOption(
        param_decls=["--version"],
        type=bool,
        is_flag=True,
        is_eager=True,
        expose_value=False,
        help="Show the version and exit.",
        callback=lambda _context, _option, wanted: _show_version(wanted),
    )


@app.callback()
def _frame(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    """A Kafka cluster in Python: real elections through ZooKeeper, Kafka's own protocols."""


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; a refusal is one sentence on standard error and an exit code of its own."""
    _open_closed_streams()
    try:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(
                    errors="backslashreplace"
                )  # A character that the terminal cannot show must not end the command.
        _require_text(sys.argv[1:] if arguments is None else arguments)
        app(arguments, prog_name="ottla")
    except (CommandRefused, LaunchRefused) as refused:
        typer.echo(f"ottla: {refused}", err=True)
        sys.exit(refused.exit_code if isinstance(refused, CommandRefused) else 1)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _open_closed_streams() -> None:
    """Open streams that the shell closed (`>&-`) on /dev/null, or the next file would take their place."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode))  # noqa: SIM115 - for as long as we live


def _require_text(words: list[str]) -> None:
    """Names in Kafka are UTF-8: bytes of the shell that are not would fail somewhere on the way."""
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError:
            shown = word.encode(errors="surrogateescape").decode(errors="backslashreplace")
            raise UsageRefused(
                f"'{shown}' is not UTF-8 text; names and flags must be (data goes through standard input)"
            ) from None


if __name__ == "__main__":
    main()
