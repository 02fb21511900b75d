"""``ottla configs``: Kafka's ``kafka-configs``, for topics, brokers, and the SCRAM credentials of users."""

from pathlib import Path
from typing import Annotated

import typer

from ottla.cli.shared.options import (
    DEFAULT_BOOTSTRAP,
    BootstrapServer,
    CommandConfig,
    Output,
    OutputOption,
    exactly_one,
    read_settings,
)
from ottla.cli.shared.refusal import UsageRefused

app = typer.Typer(add_completion=False)


@app.command()
def configs(
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    describe: Annotated[bool, typer.Option("--describe", help="List settings.")] = False,
    alter: Annotated[bool, typer.Option("--alter", help="Change settings.")] = False,
    entity_type: Annotated[
        str | None, typer.Option(metavar="TYPE", help="topics, brokers, broker-loggers or users.")
    ] = None,
    entity_name: Annotated[str | None, typer.Option(help="Its name or number.")] = None,
    entity_default: Annotated[
        bool, typer.Option("--entity-default", help="The default of all brokers.")
    ] = False,
    topic: Annotated[str | None, typer.Option(help="Short for a topic.")] = None,
    broker: Annotated[str | None, typer.Option(help="Short for a broker.")] = None,
    broker_defaults: Annotated[
        bool, typer.Option("--broker-defaults", help="Short for the default of all brokers.")
    ] = False,
    user: Annotated[str | None, typer.Option(help="Short for a user.")] = None,
    zookeeper: Annotated[
        str | None,
        typer.Option(
            "--zookeeper",
            metavar="HOST:PORT/CHROOT",
            help="Where to store users' credentials before the first broker starts.",
        ),
    ] = None,
    broker_logger: Annotated[str | None, typer.Option(help="Short for a broker's loggers.")] = None,
    all_: Annotated[bool, typer.Option("--all", help="Static settings and defaults, too.")] = False,
    add_config: Annotated[str | None, typer.Option(metavar="K=V,K=[V,V]", help="Settings to set.")] = None,
    add_config_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A property file of them.")
    ] = None,
    delete_config: Annotated[str | None, typer.Option(metavar="K,K", help="Settings to remove.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Accepted: nothing is ever asked.")] = False,
    command_config: CommandConfig = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Describe and change the settings of topics and brokers, and the credentials of users.

    Example: `ottla configs --alter --topic orders --add-config retention.ms=86400000`.
    """
    action = exactly_one({"--describe": describe, "--alter": alter})

    from ottla.cli.shared.connection import connected
    from ottla.cli.tools.configs import work

    shorts = {"topics": topic, "brokers": broker, "broker-loggers": broker_logger, "users": user}
    chosen = [(kind, name) for kind, name in shorts.items() if name is not None]
    if broker_defaults:
        chosen.append(("brokers", ""))
    if entity_type is not None:
        chosen.append((entity_type, "" if entity_default else entity_name))  # type: ignore[arg-type]
    if len(chosen) != 1:
        raise UsageRefused("one entity is needed: --topic, --broker, or --entity-type with --entity-name")
    added = work.parse_added(add_config or "")
    if add_config_file is not None:
        added.update(read_settings(add_config_file))
    deleted = [name.strip() for name in (delete_config or "").split(",") if name.strip()]
    if action == "--alter" and not added and not deleted:
        raise UsageRefused("--alter needs --add-config, --add-config-file or --delete-config")
    if chosen[0][0] == "users":
        from ottla.cli.tools.users import work as users

        name = chosen[0][1]
        if zookeeper is not None:
            users.configs_in_zookeeper(zookeeper, action, name, added, deleted)
        elif action == "--describe":
            users.configs_describe(bootstrap_server, command_config, name)
        else:
            users.configs_alter(bootstrap_server, command_config, name, added, deleted)
        return
    if zookeeper is not None:
        raise UsageRefused("--zookeeper is for users alone; other settings go through a broker")
    entity = work.Entity.of(*chosen[0])
    if action == "--describe":
        with connected(bootstrap_server, command_config) as client:
            work.describe(client, entity, all_, output)
        return
    with connected(bootstrap_server, command_config) as client:
        work.alter(client, entity, added, deleted)
