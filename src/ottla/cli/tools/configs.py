"""``ottla configs``: Kafka's ``kafka-configs``, for topics and brokers."""

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
        str | None, typer.Option("--entity-type", metavar="TYPE", help="topics, brokers or broker-loggers.")
    ] = None,
    entity_name: Annotated[str | None, typer.Option("--entity-name", help="Its name or number.")] = None,
    entity_default: Annotated[
        bool, typer.Option("--entity-default", help="The default of all brokers.")
    ] = False,
    topic: Annotated[str | None, typer.Option("--topic", help="Short for a topic.")] = None,
    broker: Annotated[str | None, typer.Option("--broker", help="Short for a broker.")] = None,
    broker_defaults: Annotated[
        bool, typer.Option("--broker-defaults", help="Short for the default of all brokers.")
    ] = False,
    broker_logger: Annotated[
        str | None, typer.Option("--broker-logger", help="Short for a broker's loggers.")
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="Static settings and defaults, too.")] = False,
    add_config: Annotated[
        str | None, typer.Option("--add-config", metavar="K=V,K=[V,V]", help="Settings to set.")
    ] = None,
    add_config_file: Annotated[
        Path | None, typer.Option("--add-config-file", metavar="FILE", help="A property file of them.")
    ] = None,
    delete_config: Annotated[
        str | None, typer.Option("--delete-config", metavar="K,K", help="Settings to remove.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Accepted: nothing is ever asked.")] = False,
    command_config: CommandConfig = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Describe and change the settings of topics and brokers.

    Example: `ottla configs --alter --topic orders --add-config retention.ms=86400000`.
    """
    action = exactly_one({"--describe": describe, "--alter": alter})

    from ottla.cli.shared.connection import connected
    from ottla.cli.tools import configs_worked

    shorts = {"topics": topic, "brokers": broker, "broker-loggers": broker_logger}
    chosen = [(kind, name) for kind, name in shorts.items() if name is not None]
    if broker_defaults:
        chosen.append(("brokers", ""))
    if entity_type is not None:
        chosen.append((entity_type, "" if entity_default else entity_name))  # type: ignore[arg-type]
    if len(chosen) != 1:
        raise UsageRefused("one entity is needed: --topic, --broker, or --entity-type with --entity-name")
    entity = configs_worked.Entity.of(*chosen[0])
    if action == "--describe":
        with connected(bootstrap_server, command_config) as client:
            configs_worked.describe(client, entity, all_, output)
        return
    added = configs_worked.parse_added(add_config or "")
    if add_config_file is not None:
        added.update(read_settings(add_config_file))
    deleted = [name.strip() for name in (delete_config or "").split(",") if name.strip()]
    if not added and not deleted:
        raise UsageRefused("--alter needs --add-config, --add-config-file or --delete-config")
    with connected(bootstrap_server, command_config) as client:
        configs_worked.alter(client, entity, added, deleted)
