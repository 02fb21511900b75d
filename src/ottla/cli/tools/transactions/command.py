"""``ottla transactions``: Kafka's ``kafka-transactions``."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ottla.cli.shared.options import (
    DEFAULT_BOOTSTRAP,
    BootstrapServer,
    CommandConfig,
    Output,
    OutputOption,
)
from ottla.cli.shared.refusal import UsageRefused

if TYPE_CHECKING:
    from ottla.client.blocking.client import Client

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="List and describe transactions; find those that hang or wait for a decision, and end them.\n\n"
    "Example: `ottla transactions list`, `ottla transactions find-hanging --topic orders`.",
)

NOTHING = -1
MAX_TIMEOUT_MIN = 15

TransactionalId = Annotated[str, typer.Option(help="The transactional id.")]
TopicOption = Annotated[str, typer.Option("--topic", help="The topic.")]
PartitionOption = Annotated[int, typer.Option("--partition", min=0, help="The partition.")]
BrokerOption = Annotated[
    int | None, typer.Option("--broker-id", min=0, help="The broker to ask; else the leader.")
]
BootstrapBehind = Annotated[
    str, typer.Option("--bootstrap-server", metavar="HOST:PORT,...", help="As before the action.")
]
"""Kafka wants it before the action; people type it behind."""


@dataclass(frozen=True, slots=True)
class Where:
    """The cluster that the command names before the action."""

    bootstrap_server: str
    command_config: Path | None


@app.callback()
def transactions(
    ctx: typer.Context,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    command_config: CommandConfig = None,
) -> None:
    """Keep where the cluster is, for the action."""
    ctx.obj = Where(bootstrap_server, command_config)


@contextmanager
def _client(ctx: typer.Context, bootstrap_server: str) -> "Iterator[Client]":
    from ottla.cli.shared.connection import connected

    where: Where = ctx.obj
    with connected(bootstrap_server or where.bootstrap_server, where.command_config) as client:
        yield client


@app.command("list")
def list_(
    ctx: typer.Context,
    duration_filter: Annotated[
        int, typer.Option(help="Only those that have lasted longer than that, in milliseconds.")
    ] = NOTHING,
    output: OutputOption = Output.TABLE,
    bootstrap_server: BootstrapBehind = DEFAULT_BOOTSTRAP,
) -> None:
    """List the transactions of all coordinators.

    Example: `ottla transactions list --duration-filter 60000`.
    """
    from ottla.cli.tools.transactions.show import list_all

    with _client(ctx, bootstrap_server) as client:
        list_all(client, duration_filter, output)


@app.command()
def describe(
    ctx: typer.Context,
    transactional_id: TransactionalId,
    output: OutputOption = Output.TABLE,
    bootstrap_server: BootstrapBehind = DEFAULT_BOOTSTRAP,
) -> None:
    """Describe one transaction: its producer, state, time-out and partitions.

    Example: `ottla transactions describe --transactional-id payments`.
    """
    from ottla.cli.tools.transactions.show import describe_one

    with _client(ctx, bootstrap_server) as client:
        describe_one(client, transactional_id, output)


@app.command("describe-producers")
def describe_producers(
    ctx: typer.Context,
    topic: TopicOption,
    partition: PartitionOption,
    broker_id: BrokerOption = None,
    output: OutputOption = Output.TABLE,
    bootstrap_server: BootstrapBehind = DEFAULT_BOOTSTRAP,
) -> None:
    """Describe the producers that a partition remembers.

    Example: `ottla transactions describe-producers --topic orders --partition 0`.
    """
    from ottla.cli.tools.transactions.show import describe_producers_of
    from ottla.model.ids import TopicPartition

    with _client(ctx, bootstrap_server) as client:
        describe_producers_of(client, TopicPartition(topic, partition), broker_id, output)


@app.command("find-hanging")
def find_hanging(
    ctx: typer.Context,
    broker_id: Annotated[int | None, typer.Option(min=0, help="Look at all that this broker leads.")] = None,
    topic: Annotated[str | None, typer.Option(help="Look at this topic.")] = None,
    partition: Annotated[int | None, typer.Option(min=0, help="Only at this partition of it.")] = None,
    max_transaction_timeout: Annotated[
        int, typer.Option(help="The longest time-out of a transaction in the cluster, in minutes.")
    ] = MAX_TIMEOUT_MIN,
    output: OutputOption = Output.TABLE,
    bootstrap_server: BootstrapBehind = DEFAULT_BOOTSTRAP,
) -> None:
    """Find transactions that are open on a partition longer than any time-out, and that no coordinator ends.

    Example: `ottla transactions find-hanging --topic orders`.
    """
    from ottla.cli.tools.transactions.hanging import find

    if broker_id is None and topic is None:
        raise UsageRefused("--broker-id or --topic is needed: where to look; see --help")
    if partition is not None and topic is None:
        raise UsageRefused("--partition is of a topic: name it with --topic")
    with _client(ctx, bootstrap_server) as client:
        find(client, broker_id, topic, partition, max_transaction_timeout, output)


@app.command()
def abort(
    ctx: typer.Context,
    topic: TopicOption,
    partition: PartitionOption,
    start_offset: Annotated[
        int | None, typer.Option(min=0, help="Where the transaction begins, as find-hanging tells it.")
    ] = None,
    producer_id: Annotated[int | None, typer.Option(min=0, help="Else: its producer id,")] = None,
    producer_epoch: Annotated[int | None, typer.Option(min=0, help="its epoch,")] = None,
    coordinator_epoch: Annotated[int | None, typer.Option(help="and its coordinator's epoch.")] = None,
    bootstrap_server: BootstrapBehind = DEFAULT_BOOTSTRAP,
) -> None:
    """End a transaction that hangs: write an abort marker to the partition.

    Example: `ottla transactions abort --topic orders --partition 0 --start-offset 42`.
    """
    from ottla.cli.tools.transactions.hanging import abort_at, abort_of
    from ottla.model.ids import TopicPartition

    where = TopicPartition(topic, partition)
    if start_offset is not None:
        with _client(ctx, bootstrap_server) as client:
            abort_at(client, where, start_offset)
    elif producer_id is None or producer_epoch is None or coordinator_epoch is None:
        raise UsageRefused(
            "--start-offset is needed, or --producer-id, --producer-epoch and --coordinator-epoch; see --help"
        )
    else:
        with _client(ctx, bootstrap_server) as client:
            abort_of(client, where, producer_id, producer_epoch, coordinator_epoch)


@app.command("list-prepared")
def list_prepared(
    ctx: typer.Context,
    output: OutputOption = Output.TABLE,
    bootstrap_server: BootstrapBehind = DEFAULT_BOOTSTRAP,
) -> None:
    """List prepared transactions, the oldest first: no time-out ends them, they wait for a decision.

    Example: `ottla transactions list-prepared`.
    """
    from ottla.cli.tools.transactions.deciding import list_them

    with _client(ctx, bootstrap_server) as client:
        list_them(client, output)


@app.command()
def complete(
    ctx: typer.Context,
    transactional_id: TransactionalId,
    commit: Annotated[bool, typer.Option("--commit", help="Commit it.")] = False,
    abort: Annotated[bool, typer.Option("--abort", help="Abort it.")] = False,
    prepared: Annotated[
        str, typer.Option(metavar="ID:EPOCH", help="Only if its producer has this id and epoch.")
    ] = "",
    bootstrap_server: BootstrapBehind = DEFAULT_BOOTSTRAP,
) -> None:
    """Commit or abort a prepared transaction in place of whoever should have decided; its producer is fenced.

    Example: `ottla transactions complete --transactional-id billing-1 --prepared 4711:3 --commit`.
    """
    from ottla.cli.tools.transactions.deciding import complete as complete_it
    from ottla.client.producing.prepared import Prepared

    if commit == abort:
        raise UsageRefused("say --commit or --abort; see --help")
    try:
        expected = Prepared.parse(prepared) if prepared else None
    except ValueError as wrong:
        raise UsageRefused(f"--prepared {wrong}") from None
    with _client(ctx, bootstrap_server) as client:
        complete_it(client, transactional_id, expected, commit=commit)


@app.command("force-terminate")
def force_terminate(
    ctx: typer.Context,
    transactional_id: TransactionalId,
    bootstrap_server: BootstrapBehind = DEFAULT_BOOTSTRAP,
) -> None:
    """Abort the transaction that is open, prepared or not, and fence its producer.

    Example: `ottla transactions force-terminate --transactional-id billing-1`.
    """
    from ottla.cli.tools.transactions.deciding import force_terminate as terminate

    with _client(ctx, bootstrap_server) as client:
        terminate(client, transactional_id)
