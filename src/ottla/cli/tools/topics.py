"""``ottla topics``: Kafka's ``kafka-topics``."""

from typing import Annotated

import typer

from ottla.cli.shared.options import (
    DEFAULT_BOOTSTRAP,
    BootstrapServer,
    CommandConfig,
    Output,
    OutputOption,
    exactly_one,
    only_with,
)
from ottla.cli.shared.refusal import UsageRefused

app = typer.Typer(add_completion=False)

_ALLOWED = {
    "--create": (
        "--topic",
        "--partitions",
        "--replication-factor",
        "--replica-assignment",
        "--config",
        "--if-not-exists",
    ),
    "--list": ("--topic", "--exclude-internal"),
    "--describe": (
        "--topic",
        "--topic-id",
        "--exclude-internal",
        "--if-exists",
        "--topics-with-overrides",
        "--under-replicated-partitions",
        "--unavailable-partitions",
        "--under-min-isr-partitions",
        "--at-min-isr-partitions",
        "--partition-size-limit-per-response",
    ),
    "--alter": ("--topic", "--partitions", "--replica-assignment", "--if-exists"),
    "--delete": ("--topic", "--if-exists"),
}


@app.command()
def topics(
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    create: Annotated[bool, typer.Option("--create", help="Create a new topic.")] = False,
    list_: Annotated[bool, typer.Option("--list", help="List all available topics.")] = False,
    describe: Annotated[bool, typer.Option("--describe", help="List details of topics.")] = False,
    alter: Annotated[bool, typer.Option("--alter", help="Add partitions to topics.")] = False,
    delete: Annotated[bool, typer.Option("--delete", help="Delete topics.")] = False,
    topic: Annotated[
        str | None, typer.Option("--topic", help="The topic; a regular expression, except with --create.")
    ] = None,
    topic_id: Annotated[str | None, typer.Option("--topic-id", help="The id of a topic to describe.")] = None,
    partitions: Annotated[
        int | None, typer.Option("--partitions", help="How many partitions it shall have.")
    ] = None,
    replication_factor: Annotated[
        int | None, typer.Option("--replication-factor", help="How many replicas of each.")
    ] = None,
    replica_assignment: Annotated[
        str | None,
        typer.Option(metavar="0:1,1:2,...", help="The brokers of each partition, preferred leader first."),
    ] = None,
    config: Annotated[
        list[str] | None, typer.Option("--config", metavar="NAME=VALUE", help="A setting of the new topic.")
    ] = None,
    delete_config: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Not here, as with Kafka's tool: `ottla configs --alter` does it."),
    ] = None,
    if_exists: Annotated[bool, typer.Option("--if-exists", help="A missing topic is not an error.")] = False,
    if_not_exists: Annotated[
        bool, typer.Option("--if-not-exists", help="A topic that is there already is no error.")
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
    action = exactly_one(
        {
            "--list": list_,
            "--describe": describe,
            "--create": create,
            "--alter": alter,
            "--delete": delete,
        }
    )
    filters = {
        "--topics-with-overrides": topics_with_overrides,
        "--under-replicated-partitions": under_replicated_partitions,
        "--unavailable-partitions": unavailable_partitions,
        "--under-min-isr-partitions": under_min_isr_partitions,
        "--at-min-isr-partitions": at_min_isr_partitions,
    }
    only_with(
        action,
        _ALLOWED[action],
        {
            "--topic": topic,
            "--topic-id": topic_id,
            "--partitions": partitions,
            "--replication-factor": replication_factor,
            "--replica-assignment": replica_assignment,
            "--config": config,
            "--if-exists": if_exists,
            "--if-not-exists": if_not_exists,
            "--exclude-internal": exclude_internal,
            **filters,
        },
    )
    if topic is None and action in ("--create", "--alter", "--delete"):
        raise UsageRefused(f"{action} needs --topic")
    if sum(filters.values()) > 1:
        raise UsageRefused(f"only one of these can be used: {', '.join(filters)}")
    if replica_assignment is not None and action == "--create" and (partitions or replication_factor):
        raise UsageRefused("--replica-assignment says all: leave --partitions and --replication-factor out")

    from ottla.cli.shared.connection import connected
    from ottla.cli.tools import topics_changed, topics_shown

    with connected(bootstrap_server, command_config) as client:
        match action:
            case "--create":
                assert topic is not None, "checked above"
                topics_changed.create(
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
                topics_changed.alter(client, topic, partitions, replica_assignment, if_exists)
            case "--delete":
                assert topic is not None, "checked above"
                topics_changed.delete(client, topic, if_exists)
            case "--list":
                topics_shown.list_topics(client, topic, exclude_internal, output)
            case "--describe":
                chosen = next((flag for flag, given in filters.items() if given), None)
                topics_shown.describe(client, topic, topic_id, exclude_internal, if_exists, chosen, output)
