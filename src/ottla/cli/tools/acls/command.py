"""``ottla acls``: access rules listed, added and removed, as with kafka-acls."""

from pathlib import Path
from typing import Annotated

import typer

from ottla.cli.shared.options import DEFAULT_BOOTSTRAP, BootstrapServer
from ottla.cli.shared.refusal import UsageRefused

app = typer.Typer(add_completion=False)

Names = list[str] | None


@app.command()
def acls(
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    command_config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A file of client settings.")
    ] = None,
    add: Annotated[bool, typer.Option("--add", help="Add rules.")] = False,
    remove: Annotated[bool, typer.Option("--remove", help="Remove rules.")] = False,
    list_: Annotated[bool, typer.Option("--list", help="List rules.")] = False,
    topic: Annotated[Names, typer.Option(metavar="NAME", help="A topic, or '*'.")] = None,
    group: Annotated[Names, typer.Option(metavar="NAME", help="A consumer group, or '*'.")] = None,
    transactional_id: Annotated[Names, typer.Option(metavar="NAME", help="A transactional id.")] = None,
    delegation_token: Annotated[Names, typer.Option(metavar="NAME", help="A delegation token.")] = None,
    user_principal: Annotated[Names, typer.Option(metavar="NAME", help="A user, as a resource.")] = None,
    cluster: Annotated[bool, typer.Option("--cluster", help="The cluster itself.")] = False,
    resource_pattern_type: Annotated[
        str, typer.Option(metavar="KIND", help="literal, prefixed, or to find: any, match.")
    ] = "literal",
    operation: Annotated[Names, typer.Option(metavar="NAME", help="Read, Write, …; All without it.")] = None,
    allow_principal: Annotated[Names, typer.Option(metavar="TYPE:NAME", help="Whom to allow.")] = None,
    deny_principal: Annotated[Names, typer.Option(metavar="TYPE:NAME", help="Whom to refuse.")] = None,
    allow_host: Annotated[Names, typer.Option(metavar="ADDRESS", help="From where; '*' without it.")] = None,
    deny_host: Annotated[Names, typer.Option(metavar="ADDRESS", help="From where; '*' without it.")] = None,
    producer: Annotated[bool, typer.Option("--producer", help="What a producer needs.")] = False,
    consumer: Annotated[bool, typer.Option("--consumer", help="What a consumer needs.")] = False,
    idempotent: Annotated[
        bool, typer.Option("--idempotent", help="With --producer: an idempotent one.")
    ] = False,
    principal: Annotated[
        Names, typer.Option(metavar="TYPE:NAME", help="List rules about these only.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Remove without asking.")] = False,
) -> None:
    """List, add and remove the rules that say who may do what.

    Example: `ottla acls --add --allow-principal User:bob --operation Read --topic orders`.
    """
    from ottla.cli.tools.acls import work
    from ottla.cli.tools.acls.wanted import Wanted

    if add + remove + list_ != 1:
        raise UsageRefused("say one of --list, --add, --remove")
    wanted = Wanted(
        topics=topic or [],
        groups=group or [],
        transactional_ids=transactional_id or [],
        tokens=delegation_token or [],
        users=user_principal or [],
        is_cluster=cluster,
        pattern=resource_pattern_type,
        operations=operation or ["All"],
        allowed=(allow_principal or [], allow_host or []),
        denied=(deny_principal or [], deny_host or []),
        is_producer=producer,
        is_consumer=consumer,
        is_idempotent=idempotent,
    )
    if add:
        work.add(bootstrap_server, command_config, wanted)
    elif remove:
        work.remove(bootstrap_server, command_config, wanted, is_sure=force)
    else:
        work.list_rules(bootstrap_server, command_config, wanted, principal or [])
