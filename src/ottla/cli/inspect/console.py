"""``ottla console``: the web console over a cluster."""

import importlib.util
from pathlib import Path
from typing import Annotated

import typer

from ottla.cli.shared.options import DEFAULT_BOOTSTRAP, BootstrapServer, CommandConfig
from ottla.cli.shared.refusal import CommandRefused, UsageRefused

app = typer.Typer(add_completion=False)

DEFAULT_PORT = 8092
NEEDED = ("starlette", "uvicorn", "jinja2")
IMPATIENT = {"request.timeout.ms": "2000", "default.api.timeout.ms": "6000", "client.id": "ottla-console"}
"""A frozen broker shall not freeze the picture: another is asked."""


@app.command()
def console(
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    port: Annotated[
        int, typer.Option(min=0, max=65_535, help="Where it listens, on 127.0.0.1 alone. 0: a free port.")
    ] = DEFAULT_PORT,
    token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Keep the token here, for an address that stays; made for its owner alone where it is not"
            " there. Without it every start has a token of its own.",
        ),
    ] = None,
    allow: Annotated[
        str,
        typer.Option(
            metavar="ACTS",
            help="What it may do, by name: elect, reassign, configs, topics, produce, groups. Each act is"
            " shown first, and done as it was shown.",
        ),
    ] = "",
    no_records: Annotated[
        bool, typer.Option("--no-records", help="Show no keys and values of records.")
    ] = False,
    listening: Annotated[int | None, typer.Option(hidden=True, help="A socket that listens already.")] = None,
    command_config: CommandConfig = None,
) -> None:
    """Show the cluster in a browser: why a broker leads, what happened, whether a broker may leave.

    It reads only, unless --allow opens an act; it asks the brokers as any client does, and nothing while
    nobody looks. From another machine: `ssh -L 8092:127.0.0.1:8092 HOST`.

    Example: `ottla console`, then open the address that it prints.
    """
    require_packages()

    from ottla.cli.local.output import tell
    from ottla.cli.shared.connection import client_config, servers_here
    from ottla.cli.shared.options import read_settings
    from ottla.cli.shared.signals import stop_once
    from ottla.console.change.act import NAMES
    from ottla.console.guard.token import kept_secret
    from ottla.console.serve import bound, inherited, serve

    allowed = [name for name in allow.split(",") if name]
    if unknown := [name for name in allowed if name not in NAMES]:
        raise UsageRefused(f"--allow {unknown[0]}: there is no such act; there are {', '.join(NAMES)}")
    properties = {**IMPATIENT, **read_settings(command_config)}
    servers = bootstrap_server or properties.get("bootstrap.servers") or servers_here()
    config = client_config(servers, properties)
    try:
        secret = kept_secret(token_file)
    except (OSError, UnicodeDecodeError) as error:
        raise CommandRefused(f"--token-file {token_file}: {error}") from None
    try:
        opened = bound(port) if listening is None else inherited(listening)
    except OSError as error:
        raise CommandRefused(
            f"the console cannot listen on 127.0.0.1:{port} ({error.strerror}); --port 0 takes a free one"
        ) from None
    with stop_once():  # The server stops in order first, and raises the signal again.
        serve(
            config,
            opened,
            secret,
            lambda address: tell(f"{address}  (cluster at {servers})"),
            allowed=allowed,
            log=tell,
            shows_records=not no_records,
        )


def require_packages() -> None:
    """The console's packages come with an extra: brokers do without."""
    missing = missing_packages()
    if missing:
        raise CommandRefused(f"the console needs {', '.join(missing)}: pip install 'ottla[console]'")


def missing_packages() -> list[str]:
    """Which of them are not here."""
    return [name for name in NEEDED if importlib.util.find_spec(name) is None]
