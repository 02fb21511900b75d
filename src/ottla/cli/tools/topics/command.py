"""``ottla topics``: Kafka's ``kafka-topics``."""

from typing import Annotated

import typer

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

_FILTERS = (
    "--topics-with-overrides",
    "--under-replicated-partitions",
    "--unavailable-partitions",
    "--under-min-isr-partitions",
    "--at-min-isr-partitions",
)
_ALLOWED = {
    "--list": ("--topic", "--exclude-internal"),
    "--describe": ("--topic", "--topic-id", "--exclude-internal", "--if-exists", *_FILTERS),
    "--create": (
        "--topic",
        "--partitions",
        "--replication-factor",
        "--replica-assignment",
        "--config",
        "--if-not-exists",
    ),
    "--alter": ("--topic", "--partitions", "--replica-assignment", "--if-exists"),
    "--delete": ("--topic", "--if-exists"),
}


@app.command()
def topics(
    ctx: typer.Context,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    create: Annotated[bool, typer.Option("--create", help="Create a new topic.")] = False,
    list_: Annotated[bool, typer.Option("--list", help="List all available topics.")] = False,
    describe: Annotated[bool, typer.Option("--describe", help="List details of topics.")] = False,
    alter: Annotated[bool, typer.Option("--alter", help="Add partitions to topics.")] = False,
    delete: Annotated[bool, typer.Option("--delete", help="Delete topics.")] = False,
    topic: Annotated[
        str | None, typer.Option(help="The topic; a regular expression, except with --create.")
    ] = None,
    topic_id: Annotated[str | None, typer.Option(help="The id of a topic to describe.")] = None,
    partitions: Annotated[int | None, typer.Option(help="How many partitions it shall have.")] = None,
    replication_factor: Annotated[int | None, typer.Option(help="How many replicas of each.")] = None,
    replica_assignment: Annotated[
        str | None,
        typer.Option(metavar="0:1,1:2,...", help="The brokers of each partition, preferred leader first."),
    ] = None,
    config: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="A setting of the new topic.")
    ] = None,
    delete_config: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Not here, as with Kafka's tool: `ottla configs --alter` does it."),
    ] = None,
    if_exists: Annotated[bool, typer.Option("--if-exists", help="A missing topic is not an error.")] = False,
    if_not_exists: Annotated[
        bool, typer.Option("--if-not-exists", help="A topic that exists already is not an error.")
    ] = False,
    exclude_internal: Annotated[
        bool, typer.Option("--exclude-internal", help="Leave out internal topics.")
    ] = False,
    topics_with_overrides: Annotated[
        bool, typer.Option("--topics-with-overrides", help="Only topics with settings of their own.")
    ] = False,
    under_replicated_partitions: Annotated[
        bool, typer.Option("--under-replicated-partitions", help="Only partitions with replicas out of sync.")
    ] = False,
    unavailable_partitions: Annotated[
        bool, typer.Option("--unavailable-partitions", help="Only partitions without a leader.")
    ] = False,
    under_min_isr_partitions: Annotated[
        bool, typer.Option("--under-min-isr-partitions", help="Only partitions with too small an ISR.")
    ] = False,
    at_min_isr_partitions: Annotated[
        bool, typer.Option("--at-min-isr-partitions", help="Only partitions whose ISR is just large enough.")
    ] = False,
    partition_size_limit_per_response: Annotated[
        int | None, typer.Option(help="Accepted for Kafka's sake; changes nothing.")
    ] = None,
    command_config: CommandConfig = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """List, describe, create, grow and delete topics.

    Example: `ottla topics --create --topic orders --partitions 3 --replication-factor 3`, then
    `ottla topics --describe --topic orders`.
    """
    if delete_config:
        raise UsageRefused(
            "--delete-config is done by `ottla configs --alter --entity-type topics --entity-name TOPIC"
            f" --delete-config {','.join(delete_config)}`"
        )
    action = chosen_action(ctx, _ALLOWED, ["--partition-size-limit-per-response"])
    filters = [flag for flag in given_options(ctx) if flag in _FILTERS]
    if topic is None and action in ("--create", "--alter", "--delete"):
        raise UsageRefused(f"{action} needs --topic")
    if len(filters) > 1:
        raise UsageRefused(f"only one of these can be used: {', '.join(_FILTERS)}")
    if replica_assignment is not None and action == "--create" and (partitions or replication_factor):
        raise UsageRefused("--replica-assignment says all: leave --partitions and --replication-factor out")

    from ottla.cli.shared.connection import connected
    from ottla.cli.tools.topics import change, show

    with connected(bootstrap_server, command_config) as client:
        match action:
            case "--create":
                assert topic is not None, "checked above"
                change.create(
                    client,
                    topic,
                    partitions,
                    replication_factor,
                    replica_assignment,
                    config or [],
                    if_not_exists,
                )
            case "--alter":
                assert topic is not None, "checked above"
                change.alter(client, topic, partitions, replica_assignment, if_exists)
            case "--delete":
                assert topic is not None, "checked above"
                change.delete(client, topic, if_exists)
            case "--list":
                show.list_topics(client, topic, exclude_internal, output)
            case "--describe":
                chosen = filters[0] if filters else None
                show.describe(client, topic, topic_id, exclude_internal, if_exists, chosen, output)
