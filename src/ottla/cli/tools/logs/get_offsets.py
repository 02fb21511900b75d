"""``ottla get-offsets``: Kafka's ``kafka-get-offsets``."""

import re
from collections.abc import Callable
from typing import Annotated

import typer

from ottla.cli.shared.options import (
    DEFAULT_BOOTSTRAP,
    BootstrapServer,
    CommandConfig,
    Output,
    OutputOption,
    numbers,
    pattern,
)
from ottla.cli.shared.refusal import CommandRefused, UsageRefused
from ottla.model.timestamps import EARLIEST, EARLIEST_LOCAL, LATEST, LATEST_TIERED, MAX_TIMESTAMP

app = typer.Typer(add_completion=False)

COLUMNS = ("topic", "partition", "offset")
TIMES = {
    "latest": LATEST,
    "earliest": EARLIEST,
    "max-timestamp": MAX_TIMESTAMP,
    "earliest-local": EARLIEST_LOCAL,
    "latest-tiered": LATEST_TIERED,
}
_PARTITION_PATTERN = re.compile(r"([^:,]*)(?::(?:(\d*)|(?:(\d*)-(\d*))))?")


@app.command()
def get_offsets(
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    broker_list: Annotated[str | None, typer.Option(help="The old name of --bootstrap-server.")] = None,
    topic: Annotated[str | None, typer.Option(help="The topic, or a regular expression; else all.")] = None,
    partitions: Annotated[str | None, typer.Option(metavar="0,1,...", help="Only these partitions.")] = None,
    topic_partitions: Annotated[
        str | None,
        typer.Option(metavar="orders:0,logs:1-3", help="Patterns: topic:number, topic:from-until, topic."),
    ] = None,
    time: Annotated[
        str, typer.Option(help="A timestamp in milliseconds, latest, earliest or max-timestamp.")
    ] = "latest",
    exclude_internal_topics: Annotated[
        bool, typer.Option("--exclude-internal-topics", help="Leave out internal topics.")
    ] = False,
    command_config: CommandConfig = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Print the offsets of partitions at a time, as topic:partition:offset.

    Example: `ottla get-offsets --topic orders --time earliest`.
    """
    if topic_partitions is not None and (topic is not None or partitions is not None):
        raise UsageRefused("--topic-partitions cannot be used with --topic or --partitions")
    is_wanted = by_patterns(topic_partitions) if topic_partitions is not None else by_name(topic, partitions)
    timestamp = parse_time(time)

    from ottla.cli.shared.connection import connected
    from ottla.cli.shared.offsets import offsets_at
    from ottla.cli.shared.printing import print_rows
    from ottla.client.admin.topics import describe_topics
    from ottla.model.ids import TopicPartition

    with connected(broker_list or bootstrap_server, command_config) as client:
        wanted = sorted(
            TopicPartition(row.name, partition.partition_index)
            for row in client.run(describe_topics).topics
            for partition in row.partitions
            if row.name is not None
            and not (exclude_internal_topics and row.is_internal)
            and is_wanted(row.name, partition.partition_index)
        )
        if not wanted:
            raise CommandRefused(
                "Could not match any topic-partitions with the specified filters; see `ottla topics --list`"
            )
        found = offsets_at(client, dict.fromkeys(wanted, timestamp))
    for name in wanted:
        if name not in found:
            typer.echo(f"Skip getting offsets for topic-partition {name}: it has no leader", err=True)
    rows = [(*name, found[name]) for name in wanted if found.get(name, -1) >= 0]
    if output is not Output.TABLE:
        print_rows([dict(zip(COLUMNS, row, strict=True)) for row in rows], output, COLUMNS)
    else:
        for row in rows:
            typer.echo(":".join(map(str, row)))


def parse_time(text: str) -> int:
    """A name or a number of milliseconds."""
    if text.lower() in TIMES:
        return TIMES[text.lower()]
    try:
        time = int(text)
    except ValueError:
        time = min(TIMES.values()) - 1
    if time < min(TIMES.values()):
        raise UsageRefused(f"--time {text!r} is neither a timestamp nor one of {', '.join(TIMES)}")
    return time


def by_name(topic: str | None, partitions: str | None) -> Callable[[str, int], bool]:
    """``--topic`` and ``--partitions`` as a question."""
    names = None if topic is None else pattern("--topic", topic)
    some = None if partitions is None else set(numbers("--partitions", partitions))
    return lambda name, number: (
        (names is None or names.fullmatch(name) is not None) and (some is None or number in some)
    )


def by_patterns(text: str) -> Callable[[str, int], bool]:
    """``--topic-partitions`` as a question; the upper bound of a range is exclusive."""
    rules: list[tuple[re.Pattern[str], int, int | None]] = []
    for part in text.split(","):
        found = _PARTITION_PATTERN.fullmatch(part)
        if found is None:
            raise UsageRefused(f"--topic-partitions {part!r} is not of the form topic:0-3")
        name = pattern("--topic-partitions", found[1] or ".*")
        if found[2]:
            rules.append((name, int(found[2]), int(found[2]) + 1))
        else:
            rules.append((name, int(found[3] or 0), int(found[4]) if found[4] else None))
    return lambda name, number: any(
        rule.fullmatch(name) and low <= number and (high is None or number < high)
        for rule, low, high in rules
    )
