"""``ottla configs``: Kafka's ``kafka-configs``, for topics, brokers, quotas, and users' credentials."""

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
        list[str] | None,
        typer.Option(metavar="TYPE", help="topics, brokers, broker-loggers, users, clients or ips."),
    ] = None,
    entity_name: Annotated[list[str] | None, typer.Option(help="Its name or number.")] = None,
    entity_default: Annotated[
        bool, typer.Option("--entity-default", help="The default of all brokers, users, clients or ips.")
    ] = False,
    topic: Annotated[str | None, typer.Option(help="Short for a topic.")] = None,
    broker: Annotated[str | None, typer.Option(help="Short for a broker.")] = None,
    broker_defaults: Annotated[
        bool, typer.Option("--broker-defaults", help="Short for the default of all brokers.")
    ] = False,
    user: Annotated[str | None, typer.Option(help="Short for a user.")] = None,
    user_defaults: Annotated[
        bool, typer.Option("--user-defaults", help="Short for the default of all users.")
    ] = False,
    client_id: Annotated[
        str | None, typer.Option("--client-id", help="Short for a client id, alone or of a user.")
    ] = None,
    client_defaults: Annotated[
        bool, typer.Option("--client-defaults", help="Short for the default of all client ids.")
    ] = False,
    ip: Annotated[str | None, typer.Option(help="Short for an address.")] = None,
    ip_defaults: Annotated[
        bool, typer.Option("--ip-defaults", help="Short for the default of all addresses.")
    ] = False,
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
    """Describe and change the settings of topics and brokers, quotas of clients, and credentials of users.

    Example: `ottla configs --alter --topic orders --add-config retention.ms=86400000`.
    """
    action = exactly_one({"--describe": describe, "--alter": alter})

    from ottla.cli.shared.connection import connected
    from ottla.cli.tools.configs import quotas, work

    shorts = (  # In Kafka's order, which shows in what is said.
        ("topics", topic),
        ("clients", client_id),
        ("users", user),
        ("brokers", broker),
        ("broker-loggers", broker_logger),
        ("ips", ip),
        ("clients", "" if client_defaults else None),
        ("users", "" if user_defaults else None),
        ("brokers", "" if broker_defaults else None),
        ("ips", "" if ip_defaults else None),
    )
    chosen = work.named(entity_type or [], entity_name or [], entity_default)
    chosen += [(kind, name) for kind, name in shorts if name is not None]
    quota_entities = {kind: name for kind, name in chosen if kind in quotas.KINDS}
    if len(chosen) != 1 and (not quota_entities or len(quota_entities) != len(chosen)):
        raise UsageRefused("one entity is needed: --topic, --broker, or --entity-type with --entity-name")
    added = work.parse_added(add_config or "")
    if add_config_file is not None:
        added.update(read_settings(add_config_file))
    deleted = [name.strip() for name in (delete_config or "").split(",") if name.strip()]
    if action == "--alter" and not added and not deleted:
        raise UsageRefused("--alter needs --add-config, --add-config-file or --delete-config")
    if quota_entities:
        _of_clients(
            bootstrap_server, command_config, zookeeper, quota_entities, action, added=added, deleted=deleted
        )
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


def _of_clients(
    bootstrap_server: str,
    command_config: Path | None,
    zookeeper: str | None,
    entities: dict[str, str | None],
    action: str,
    *,
    added: dict[str, str],
    deleted: list[str],
) -> None:
    """Quotas, and credentials of users."""
    from ottla.cli.shared.connection import connected
    from ottla.cli.tools.configs import quotas
    from ottla.cli.tools.users import work as users

    quotas.check_kinds(entities)
    is_of_users = list(entities) == ["users"]
    if zookeeper is not None:
        if not is_of_users:
            raise UsageRefused("--zookeeper is for users' credentials alone; quotas go through a broker")
        users.configs_in_zookeeper(zookeeper, action, entities["users"], added, deleted)
    elif action == "--describe":
        with connected(bootstrap_server, command_config) as client:
            quotas.describe(client, entities)
        if is_of_users and entities["users"] != "":
            users.configs_describe(bootstrap_server, command_config, entities["users"])
    elif quotas.is_for(entities, [*added, *deleted]):
        with connected(bootstrap_server, command_config) as client:
            quotas.alter(client, entities, added, deleted)
    else:
        users.configs_alter(bootstrap_server, command_config, entities["users"], added, deleted)
