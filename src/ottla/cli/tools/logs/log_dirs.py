"""``ottla log-dirs``: Kafka's ``kafka-log-dirs``."""

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ottla.cli.shared.options import (
    DEFAULT_BOOTSTRAP,
    BootstrapServer,
    CommandConfig,
    Output,
    OutputOption,
    numbers,
)
from ottla.cli.shared.refusal import CommandRefused, UsageRefused

if TYPE_CHECKING:
    from ottla.client.blocking.client import Client
    from ottla.wire.apis.describe_log_dirs import DescribeLogDirsResult

app = typer.Typer(add_completion=False)


@app.command()
def log_dirs(
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    describe: Annotated[bool, typer.Option("--describe", help="Describe them (the only action).")] = False,
    broker_list: Annotated[str, typer.Option(metavar="0,1,...", help="Only these brokers.")] = "",
    topic_list: Annotated[str, typer.Option(metavar="NAME,...", help="Only these topics.")] = "",
    command_config: CommandConfig = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Print what lies in the brokers' log directories, as JSON.

    Example: `ottla log-dirs --describe --topic-list orders`.
    """
    if not describe:
        raise UsageRefused("log-dirs needs --describe")

    from ottla.cli.shared.connection import connected
    from ottla.cli.shared.printing import print_rows
    from ottla.client.admin.cluster import describe_log_dirs

    topics = {name.strip() for name in topic_list.split(",") if name.strip()}
    with connected(bootstrap_server, command_config) as client:
        known = sorted(client.engine.metadata.brokers)
        wanted = numbers("--broker-list", broker_list) or known
        unknown = [number for number in wanted if number not in known]
        if unknown:
            raise CommandRefused(
                f"there is no live broker {unknown[0]}; alive are {', '.join(map(str, known))}"
            )
        if topics:
            _require(client, topics)
        if output is Output.TABLE:
            typer.echo("Querying brokers for log directories information")
        found = client.run(describe_log_dirs, wanted)
    if output is Output.TABLE:
        typer.echo(f"Received log directory information from brokers {','.join(map(str, wanted))}")
        brokers = [
            {"broker": number, "logDirs": [_directory(d, topics) for d in found[number]]} for number in wanted
        ]
        typer.echo(json.dumps({"version": 1, "brokers": brokers}, separators=(",", ":")))
        return
    print_rows(
        [
            {"broker": number, "log_dir": directory.log_dir, **row}
            for number in wanted
            for directory in found[number]
            for row in _directory(directory, topics)["partitions"]
        ],
        output,
    )


def _require(client: "Client", topics: set[str]) -> None:
    from ottla.client.admin.topics import describe_topics

    missing = sorted(
        row.name or "" for row in client.run(describe_topics, sorted(topics)).topics if row.error_code
    )
    if missing:
        raise CommandRefused(f"there is no topic {missing[0]}; see `ottla topics --list`")


def _directory(directory: "DescribeLogDirsResult", topics: set[str]) -> dict[str, Any]:
    return {
        "logDir": directory.log_dir,
        "error": _error(directory.error_code) if directory.error_code else None,
        "partitions": [
            {
                "partition": f"{topic.name}-{row.partition_index}",
                "size": row.partition_size,
                "offsetLag": row.offset_lag,
                "isFuture": row.is_future_key,
            }
            for topic in sorted(directory.topics, key=lambda topic: topic.name)
            for row in sorted(topic.partitions, key=lambda row: row.partition_index)
            if not topics or topic.name in topics
        ],
    }


def _error(code: int) -> str:
    """As Kafka's tool prints it, for scripts that look for it: the name of a Java class."""
    from ottla.cli.shared.connection import reason
    from ottla.model.errors import ErrorCode

    classes = {
        ErrorCode.UNKNOWN_SERVER_ERROR: "UnknownServerException",
        ErrorCode.KAFKA_STORAGE_ERROR: "KafkaStorageException",
        ErrorCode.LOG_DIR_NOT_FOUND: "LogDirNotFoundException",
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "ClusterAuthorizationException",
    }
    known = classes.get(ErrorCode(code))
    return f"org.apache.kafka.common.errors.{known}" if known else reason(code)
