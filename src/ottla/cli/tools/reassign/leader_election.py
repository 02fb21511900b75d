"""``ottla leader-election``: Kafka's ``kafka-leader-election``."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ottla.cli.shared.options import (
    DEFAULT_BOOTSTRAP,
    BootstrapServer,
    Output,
    OutputOption,
    exactly_one,
)
from ottla.cli.shared.refusal import CommandRefused, UsageRefused

if TYPE_CHECKING:
    from ottla.client.blocking.client import Client
    from ottla.model.ids import TopicPartition

app = typer.Typer(add_completion=False)


class ElectionType(StrEnum):
    """Who may be elected."""

    PREFERRED = "PREFERRED"
    UNCLEAN = "UNCLEAN"


@app.command()
def leader_election(
    election_type: Annotated[
        ElectionType,
        typer.Option(
            case_sensitive=False,
            help="PREFERRED: back to the first replica. UNCLEAN: any live one, records may be lost.",
        ),
    ],
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    topic: Annotated[str | None, typer.Option(help="The topic of one partition.")] = None,
    partition: Annotated[int | None, typer.Option(min=0, help="Its number.")] = None,
    all_topic_partitions: Annotated[
        bool, typer.Option("--all-topic-partitions", help="All partitions that need it.")
    ] = False,
    path_to_json_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help='A file like {"partitions": [{"topic": "foo", "partition": 1}]}.'),
    ] = None,
    admin_config: Annotated[
        Path | None, typer.Option("--admin.config", metavar="FILE", help="A property file for the client.")
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Elect leaders: the preferred ones, or any live ones where there is none.

    Example: `ottla leader-election --election-type preferred --all-topic-partitions`.
    """
    flags: dict[str, object] = {
        "--topic": topic,
        "--all-topic-partitions": all_topic_partitions,
        "--path-to-json-file": path_to_json_file,
    }
    exactly_one(flags)
    if (topic is None) != (partition is None):
        raise UsageRefused("--topic and --partition belong together")

    from ottla.cli.shared.connection import connected
    from ottla.cli.shared.json_files import partition_rows
    from ottla.model.ids import TopicPartition

    wanted: list[TopicPartition] | None = None
    if topic is not None and partition is not None:
        wanted = [TopicPartition(topic, partition)]
    elif path_to_json_file is not None:
        wanted = [name for name, _ in partition_rows(path_to_json_file)]
    with connected(bootstrap_server, admin_config) as client:
        elect(client, wanted, election_type, output)


def elect(
    client: "Client",
    wanted: "list[TopicPartition] | None",
    election_type: ElectionType,
    output: Output = Output.TABLE,
    what: str = "leader election ({})",
) -> None:
    """Elect, and say of each partition what came of it."""
    from ottla.cli.shared.connection import reason
    from ottla.cli.shared.printing import print_rows
    from ottla.client.admin.cluster import PREFERRED, UNCLEAN, elect_leaders
    from ottla.model.errors import ErrorCode

    number = PREFERRED if election_type is ElectionType.PREFERRED else UNCLEAN
    rows = client.run(elect_leaders, wanted, election_type=number)
    elected = [str(name) for name, row in sorted(rows.items()) if row.error_code == ErrorCode.NONE]
    settled = [
        str(name) for name, row in sorted(rows.items()) if row.error_code == ErrorCode.ELECTION_NOT_NEEDED
    ]
    failed = {
        str(name): reason(row.error_code, row.error_message)
        for name, row in sorted(rows.items())
        if row.error_code not in (ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED)
    }
    if output is not Output.TABLE:
        outcomes = {**dict.fromkeys(elected, "elected"), **dict.fromkeys(settled, "not needed"), **failed}
        print_rows([{"partition": name, "outcome": outcomes[name]} for name in sorted(outcomes)], output)
    else:
        title = what.format(election_type.value)
        if elected:
            typer.echo(f"Successfully completed {title} for partitions {', '.join(elected)}")
        if settled:
            typer.echo(f"Valid replica already elected for partitions {', '.join(settled)}")
        for name, why in failed.items():
            typer.echo(f"Error completing {title} for partition: {name}: {why}")
    if failed:
        raise CommandRefused(f"{len(failed)} replica(s) could not be elected: {next(iter(failed.values()))}")
