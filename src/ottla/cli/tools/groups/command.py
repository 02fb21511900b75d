"""``ottla consumer-groups``: Kafka's ``kafka-consumer-groups``."""

from pathlib import Path
from typing import Annotated, ClassVar

import typer

from ottla.cli.shared.optional_values import OptionalValues
from ottla.cli.shared.options import (
    DEFAULT_BOOTSTRAP,
    BootstrapServer,
    CommandConfig,
    Output,
    OutputOption,
    chosen_action,
    given_options,
)
from ottla.cli.shared.refusal import UsageRefused

app = typer.Typer(add_completion=False)

_SCOPE = ("--group", "--all-groups")
_TARGETS = (
    "--to-earliest",
    "--to-latest",
    "--to-current",
    "--to-offset",
    "--shift-by",
    "--to-datetime",
    "--by-duration",
    "--from-file",
)
_ALLOWED = {
    "--list": ("--state", "--type"),
    "--describe": (*_SCOPE, "--offsets", "--members", "--state", "--verbose"),
    "--delete": _SCOPE,
    "--reset-offsets": (*_SCOPE, "--topic", "--all-topics", "--dry-run", "--execute", "--export", *_TARGETS),
    "--delete-offsets": ("--group", "--topic"),
}


class _Command(OptionalValues):
    stand_ins: ClassVar[dict[str, str]] = {"--state": "", "--type": ""}


@app.command(cls=_Command)
def consumer_groups(
    ctx: typer.Context,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    list_: Annotated[bool, typer.Option("--list", help="List all consumer groups.")] = False,
    describe: Annotated[bool, typer.Option("--describe", help="Offsets and lag of groups.")] = False,
    delete: Annotated[bool, typer.Option("--delete", help="Delete groups without members.")] = False,
    delete_offsets: Annotated[
        bool, typer.Option("--delete-offsets", help="Forget a group's offsets of topics.")
    ] = False,
    reset_offsets: Annotated[
        bool, typer.Option("--reset-offsets", help="Move the offsets of groups without members.")
    ] = False,
    group: Annotated[list[str] | None, typer.Option(help="A group; may be repeated.")] = None,
    all_groups: Annotated[bool, typer.Option("--all-groups", help="All groups.")] = False,
    topic: Annotated[
        list[str] | None, typer.Option(metavar="TOPIC[:0,1]", help="A topic, or some partitions.")
    ] = None,
    all_topics: Annotated[bool, typer.Option("--all-topics", help="All topics the group has read.")] = False,
    offsets: Annotated[bool, typer.Option("--offsets", help="With --describe: lag (the default).")] = False,
    members: Annotated[bool, typer.Option("--members", help="With --describe: members.")] = False,
    state: Annotated[
        str | None, typer.Option(help="The state; with --list also a filter: stable,empty.")
    ] = None,
    type_: Annotated[str | None, typer.Option("--type", help="With --list: the type, or a filter.")] = None,
    verbose: Annotated[bool, typer.Option("--verbose", help="With --members: what each reads.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be reset.")] = False,
    execute: Annotated[bool, typer.Option("--execute", help="Reset.")] = False,
    export: Annotated[bool, typer.Option("--export", help="Print the plan as CSV for --from-file.")] = False,
    to_earliest: Annotated[bool, typer.Option("--to-earliest", help="To the first record.")] = False,
    to_latest: Annotated[bool, typer.Option("--to-latest", help="To the end.")] = False,
    to_current: Annotated[bool, typer.Option("--to-current", help="To where they are.")] = False,
    to_offset: Annotated[int | None, typer.Option(help="To an offset.")] = None,
    shift_by: Annotated[int | None, typer.Option(help="On, or with a minus back.")] = None,
    to_datetime: Annotated[str | None, typer.Option(help="To a time: 2026-01-31T12:00:00.000.")] = None,
    by_duration: Annotated[str | None, typer.Option(help="Back by a time: PnDTnHnMnS.")] = None,
    from_file: Annotated[Path | None, typer.Option(help="To the offsets of a CSV.")] = None,
    timeout: Annotated[int | None, typer.Option(min=1, help="Milliseconds to wait for answers.")] = None,
    command_config: CommandConfig = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """List and describe groups, delete them, and move their offsets.

    Example: `ottla consumer-groups --describe --group billing`, and
    `ottla consumer-groups --reset-offsets --group billing --topic orders --to-earliest --execute`.
    """
    action = chosen_action(ctx, _ALLOWED, ["--timeout"])
    if action != "--list" and bool(group) == all_groups:
        raise UsageRefused(f"{action} needs --group or --all-groups, and not both")

    from ottla.cli.shared.connection import connected
    from ottla.cli.tools.groups import change, show
    from ottla.cli.tools.groups import reset as groups_reset

    patience = {} if timeout is None else {"default.api.timeout.ms": str(timeout)}
    with connected(bootstrap_server, command_config, patience) as client:
        if action == "--list":
            show.list_all(client, state, type_, output)
            return
        names = show.chosen(client, group or [])
        match action:
            case "--describe":
                show.describe(client, names, _view(offsets, members, state is not None), verbose, output)
            case "--delete":
                change.delete(client, names)
            case "--delete-offsets":
                change.delete_offsets(client, names, topic or [])
            case "--reset-offsets":
                given = {flag: value for flag, value in given_options(ctx).items() if flag in _TARGETS}
                groups_reset.reset(
                    client,
                    names,
                    topic or [],
                    all_topics,
                    given,
                    mode=groups_reset.Mode.of(dry_run=dry_run, execute=execute, export=export),
                    output=output,
                    is_one_group=len(group or []) == 1,
                )


def _view(offsets: bool, members: bool, state: bool) -> str:
    """Which of its views ``--describe`` shows."""
    chosen = [name for name, given in (("members", members), ("state", state)) if given]
    if len(chosen) + offsets > 1:
        raise UsageRefused("only one of --offsets, --members and --state can be used")
    return chosen[0] if chosen else "offsets"
