"""``ottla users``: who may log in with SCRAM."""

from typing import Annotated

import typer

from ottla.cli.shared.options import DEFAULT_BOOTSTRAP, BootstrapServer, CommandConfig, Output, OutputOption

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Users that log in with SCRAM: add, list and remove them.\n\n"
    "Example: `ottla users add alice --mechanism SCRAM-SHA-512`.",
)

DEFAULT_MECHANISM = "SCRAM-SHA-512"
UserName = Annotated[str, typer.Argument(metavar="USER", help="The user's name.")]
InZooKeeper = Annotated[
    str | None,
    typer.Option(
        "--zookeeper",
        metavar="HOST:PORT/CHROOT",
        help="Write to ZooKeeper, as before the first broker starts.",
    ),
]


@app.command()
def add(
    user: UserName,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    zookeeper: InZooKeeper = None,
    password: Annotated[
        str | None, typer.Option(metavar="TEXT", help="The password; asked for if it is not given.")
    ] = None,
    mechanism: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help=f"SCRAM-SHA-256 or SCRAM-SHA-512; may be repeated. [{DEFAULT_MECHANISM}]"
        ),
    ] = None,
    iterations: Annotated[int, typer.Option(help="4096 to 16384: how slow a guess is.")] = 8192,
    command_config: CommandConfig = None,
) -> None:
    """Add a user, or give one another password. Connections that are open stay.

    Example: `ottla users add broker --zookeeper localhost:2181`.
    """
    from ottla.cli.tools.users import work

    mechanisms = work.known(mechanism or [DEFAULT_MECHANISM])
    if password is None:
        password = typer.prompt("Password", hide_input=True, confirmation_prompt=True)
    credential = work.wanted(mechanisms, iterations, password)
    if zookeeper is not None:
        work.add_in_zookeeper(zookeeper, user, credential)
    else:
        work.add(bootstrap_server, command_config, user, credential)
    typer.echo(f"User {user} may log in with {', '.join(mechanisms)}.")


@app.command(name="list")
def list_(
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    command_config: CommandConfig = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """List users and their mechanisms.

    Example: `ottla users list`.
    """
    from ottla.cli.tools.users import work

    work.list_users(bootstrap_server, command_config, output)


@app.command()
def remove(
    user: UserName,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    command_config: CommandConfig = None,
) -> None:
    """Remove a user's credentials. Connections that are open stay.

    Example: `ottla users remove alice`.
    """
    from ottla.cli.tools.users import work

    work.remove(bootstrap_server, command_config, user)
    typer.echo(f"User {user} may log in no more.")
