"""``ottla zookeeper-shell``: look at znodes and change them."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ottla.cli.shared.options import Output, OutputOption
from ottla.cli.shared.printing import print_rows
from ottla.cli.shared.refusal import CommandRefused, UsageRefused

if TYPE_CHECKING:
    from ottla.server.zookeeper.blocking import BlockingZooKeeper
    from ottla.zookeeper.ops import Stat

app = typer.Typer(add_completion=False)

COMMANDS = {
    "ls": "ls PATH",
    "get": "get PATH",
    "stat": "stat PATH",
    "set": "set PATH DATA",
    "create": "create PATH [DATA]",
    "delete": "delete PATH",
    "deleteall": "deleteall PATH",
    "watch": "watch PATH",
}


@app.command(context_settings={"ignore_unknown_options": True})
def zookeeper_shell(
    zookeeper: Annotated[str, typer.Argument(metavar="HOST:PORT/CHROOT", help="Which ZooKeeper.")],
    words: Annotated[
        list[str] | None, typer.Argument(metavar="COMMAND", help="Run this one command, and end.")
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Run ls, get, stat, set, create, delete, deleteall or watch; without a command, those of standard input.

    Example: `ottla zookeeper-shell 127.0.0.1:2181 get /controller` (`ottla status` shows the address);
    `watch /controller` tells of every change until Ctrl-C. With `--output json` ls, get and stat give rows
    for other programs.
    """
    if zookeeper.startswith("-"):
        raise UsageRefused(f"{zookeeper} stands where the address belongs: HOST:PORT, then the command")

    import sys

    from ottla.cli.shared.zookeeper import zookeeper_session

    with zookeeper_session(zookeeper) as session:
        if words:
            run(session, words, output)
        elif sys.stdin.isatty():
            converse(session, zookeeper, output)
        else:
            for line in sys.stdin:
                if not run_line(session, line, output):
                    return


def converse(session: "BlockingZooKeeper", zookeeper: str, output: Output) -> None:
    """At a terminal there is a prompt, and a mistake is told and does not end it."""
    from ottla.server.zookeeper.blocking import ZooKeeperRefused

    typer.echo(f"{'; '.join(COMMANDS.values())}; quit")
    while True:
        try:
            line = input(f"[zk: {zookeeper}] ")
        except EOFError:
            typer.echo()
            return
        try:
            if not run_line(session, line, output):
                return
        except (CommandRefused, ZooKeeperRefused) as refused:
            typer.echo(f"ottla: {refused}", err=True)
        except typer.Exit:
            continue  # Ctrl-C has ended `watch`, not the shell.


def run_line(session: "BlockingZooKeeper", line: str, output: Output) -> bool:
    """One line; whether there may be another."""
    import shlex

    try:
        parts = shlex.split(line)
    except ValueError as error:
        raise UsageRefused(f"{line.strip()!r}: {error}") from None
    if parts and parts[0] in ("quit", "close", "exit"):
        return False
    if parts:
        run(session, parts, output)
    return True


def run(session: "BlockingZooKeeper", words: list[str], output: Output) -> None:
    """One command."""
    if output is not Output.TABLE and words[0] in ("ls", "get", "stat") and len(words) == 2:
        print_rows(rows_of(session, words[0], words[1]), output)
        return
    match words:
        case ["ls", path]:
            typer.echo(f"[{', '.join(session.children(path))}]")
        case ["get", path]:
            data = session.get(path).data
            typer.echo("null" if data is None else data.decode(errors="backslashreplace"))
        case ["stat", path]:
            stat = session.exists(path)
            if stat is None:
                raise CommandRefused(f"there is no node {path}")
            typer.echo("\n".join(stat_lines(stat)))
        case ["set", path, data]:
            session.set(path, data.encode())
        case ["create", path, *rest] if len(rest) <= 1:
            created = session.create(path, rest[0].encode() if rest else None)
            typer.echo(f"Created {created}")
        case ["delete", path]:
            session.delete(path)
        case ["deleteall", path]:
            session.delete(path, recursive=True)
        case ["watch", path]:
            from ottla.cli.tools.zookeeper.watch import watch

            watch(session, path)
        case _:
            raise UsageRefused(f"{' '.join(words)!r} is none of: {'; '.join(COMMANDS.values())}")


def rows_of(session: "BlockingZooKeeper", command: str, path: str) -> list[dict[str, Any]]:
    """What looking at a node gives, for other programs."""
    if command == "ls":
        return [{"path": path.rstrip("/") + f"/{child}"} for child in session.children(path)]
    if command == "get":
        data = session.get(path).data
        return [{"path": path, "data": None if data is None else data.decode(errors="backslashreplace")}]
    stat = session.exists(path)
    if stat is None:
        raise CommandRefused(f"there is no node {path}")
    return [{"path": path, **dict(line.split(" = ", 1) for line in stat_lines(stat))}]


def stat_lines(stat: "Stat") -> list[str]:
    """All that ZooKeeper keeps of a node beside its data, by the names of its own shell."""
    from datetime import UTC, datetime

    def when(time_ms: int) -> str:
        return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(" ", "milliseconds")

    return [
        f"cZxid = {stat.czxid:#x}",
        f"ctime = {when(stat.ctime_ms)}",
        f"mZxid = {stat.mzxid:#x}",
        f"mtime = {when(stat.mtime_ms)}",
        f"pZxid = {stat.pzxid:#x}",
        f"cversion = {stat.cversion}",
        f"dataVersion = {stat.version}",
        f"aclVersion = {stat.aversion}",
        f"ephemeralOwner = {stat.ephemeral_owner:#x}",
        f"dataLength = {stat.data_length}",
        f"numChildren = {stat.num_children}",
    ]
