"""``ottla reassign-partitions``: Kafka's ``kafka-reassign-partitions``, with a rehearsal and a wait."""

from pathlib import Path
from typing import Annotated

import typer

from ottla.cli.shared.options import (
    DEFAULT_BOOTSTRAP,
    BootstrapServer,
    CommandConfig,
    Output,
    OutputOption,
    chosen_action,
)
from ottla.cli.shared.refusal import UsageRefused

app = typer.Typer(add_completion=False)

_PLAN = "--reassignment-json-file"
_DIRECTORIES = "--replica-alter-log-dirs-throttle"
_ALLOWED = {
    "--generate": ("--topics-to-move-json-file", "--broker-list", "--disable-rack-aware"),
    "--execute": (
        _PLAN,
        "--throttle",
        _DIRECTORIES,
        "--additional",
        "--preserve-throttles",
        "--dry-run",
        "--wait",
    ),
    "--verify": (_PLAN, "--preserve-throttles", "--wait"),
    "--cancel": (_PLAN, "--preserve-throttles"),
    "--list": (),
}


@app.command()
def reassign_partitions(
    ctx: typer.Context,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    generate: Annotated[bool, typer.Option("--generate", help="Propose a plan; nothing is moved.")] = False,
    execute: Annotated[bool, typer.Option("--execute", help="Start the moves of a plan.")] = False,
    verify: Annotated[bool, typer.Option("--verify", help="How far are the moves of a plan?")] = False,
    cancel: Annotated[bool, typer.Option("--cancel", help="Turn the moves of a plan back.")] = False,
    list_: Annotated[bool, typer.Option("--list", help="All moves that go on.")] = False,
    reassignment_json_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help='A plan: {"partitions": [{"topic": "foo", "partition": 1, "replicas": [1,2,3]}]};'
            ' "log_dirs": ["any","/b","any"] beside "replicas" names directories.',
        ),
    ] = None,
    topics_to_move_json_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help='For --generate: {"topics": [{"topic": "foo"}]}.')
    ] = None,
    broker_list: Annotated[
        str | None, typer.Option(metavar="0,1,...", help="For --generate: where to.")
    ] = None,
    disable_rack_aware: Annotated[
        bool, typer.Option("--disable-rack-aware", help="For --generate: do not look at racks.")
    ] = False,
    throttle: Annotated[int, typer.Option(help="Bytes a second between brokers.")] = -1,
    replica_alter_log_dirs_throttle: Annotated[
        int, typer.Option(_DIRECTORIES, help="Bytes a second between directories of a broker.")
    ] = -1,
    additional: Annotated[
        bool, typer.Option("--additional", help="Start although others go on; also changes a throttle.")
    ] = False,
    preserve_throttles: Annotated[
        bool, typer.Option("--preserve-throttles", help="Leave throttles as they are.")
    ] = False,
    timeout: Annotated[
        int, typer.Option(min=0, help="Milliseconds for moves between directories to begin.")
    ] = 10_000,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="With --execute: show what would move, and how much.")
    ] = False,
    wait: Annotated[
        bool, typer.Option("--wait", help="Stay until all is moved, showing progress; then lift throttles.")
    ] = False,
    command_config: CommandConfig = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Move partitions between brokers: propose, rehearse, execute, verify, cancel.

    Example: `ottla reassign-partitions --execute --reassignment-json-file plan.json --throttle 50000000
    --wait`.
    """
    action = chosen_action(ctx, _ALLOWED, ["--timeout"])
    if output is not Output.TABLE and action not in ("--list", "--verify") and not dry_run:
        raise UsageRefused("--output is for --list, --verify and --dry-run; a plan is JSON already")
    for flag, rate in (("--throttle", throttle), (_DIRECTORIES, replica_alter_log_dirs_throttle)):
        if rate != -1 and rate < 1:
            raise UsageRefused(f"{flag} must be at least 1 byte a second")

    from ottla.cli.shared.connection import connected
    from ottla.cli.tools.reassign import directory_moves, progress, reassignment
    from ottla.cli.tools.reassign.plan import read_plan

    if action == "--generate":
        if topics_to_move_json_file is None or not broker_list:
            raise UsageRefused("--generate needs --topics-to-move-json-file and --broker-list")
        with connected(bootstrap_server, command_config) as client:
            reassignment.generate(client, topics_to_move_json_file, broker_list, not disable_rack_aware)
        return
    if action == "--list":
        with connected(bootstrap_server, command_config) as client:
            reassignment.list_moves(client, output)
        return
    if reassignment_json_file is None:
        raise UsageRefused(f"{action} needs {_PLAN}")
    plan = read_plan(reassignment_json_file)
    moves = directory_moves.read_moves(reassignment_json_file)
    directories = directory_moves.Directories(moves, timeout, replica_alter_log_dirs_throttle)
    with connected(bootstrap_server, command_config) as client:
        match action:
            case "--execute" if dry_run:
                progress.rehearse(client, plan, throttle, output)
                return
            case "--execute":
                reassignment.execute(
                    client, plan, throttle, additional, preserve_throttles, directories, is_awaited=wait
                )
            case "--cancel":
                reassignment.cancel(client, plan, preserve_throttles, directories)
        if wait:
            progress.wait(
                client, plan, "the same plan with --verify tells when they are done, and lifts throttles"
            )
            directory_moves.wait_for_moves(client, moves)
        if action == "--verify" or wait:
            reassignment.verify(client, plan, preserve_throttles, output, directories)
