"""``ottla console-consumer``: Kafka's ``kafka-console-consumer``."""

from pathlib import Path
from typing import Annotated

import typer

from ottla.cli.shared.options import (
    DEFAULT_BOOTSTRAP,
    BootstrapServer,
    Output,
    key_values,
    read_properties,
    read_settings,
)
from ottla.cli.shared.refusal import UsageRefused

app = typer.Typer(add_completion=False)


@app.command()
def console_consumer(
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    topic: Annotated[str | None, typer.Option(help="The topic to read.")] = None,
    include: Annotated[
        str | None, typer.Option("--include", "--whitelist", help="A regular expression of topics.")
    ] = None,
    from_beginning: Annotated[
        bool, typer.Option("--from-beginning", help="Begin with the earliest record, not the next.")
    ] = False,
    partition: Annotated[int | None, typer.Option(min=0, help="Only this partition.")] = None,
    offset: Annotated[str | None, typer.Option(help="Where to begin: a number, earliest or latest.")] = None,
    group: Annotated[
        str | None,
        typer.Option(help="Join this group, begin at its offsets and commit them."),
    ] = None,
    max_messages: Annotated[
        int | None, typer.Option(min=-1, help="End after so many records; -1: never.")
    ] = None,
    timeout_ms: Annotated[
        int | None, typer.Option(help="End when none came for so long; a negative number: never.")
    ] = None,
    isolation_level: Annotated[
        str | None,
        typer.Option(
            help="read_committed leaves out what was not committed; read_uncommitted unless the consumer's"
            " settings say otherwise."
        ),
    ] = None,
    property_: Annotated[
        list[str] | None,
        typer.Option(
            "--property",
            metavar="NAME=VALUE",
            help="print.timestamp, print.key, print.offset, print.partition, print.headers, print.value,"
            " key.separator, line.separator, headers.separator, null.literal, key.deserializer,"
            " value.deserializer.",
        ),
    ] = None,
    formatter_config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A file of such properties.")
    ] = None,
    key_deserializer: Annotated[
        str | None, typer.Option(help="String, ByteArray, Integer, Long, Short, Float, Double.")
    ] = None,
    value_deserializer: Annotated[str | None, typer.Option(help="The same for values.")] = None,
    consumer_property: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="A setting of the consumer.")
    ] = None,
    consumer_config: Annotated[
        Path | None, typer.Option("--consumer.config", metavar="FILE", help="A file of such settings.")
    ] = None,
    formatter: Annotated[
        str, typer.Option(help="DefaultMessageFormatter, or NoOpMessageFormatter to print nothing.")
    ] = "DefaultMessageFormatter",
    skip_message_on_error: Annotated[
        bool, typer.Option("--skip-message-on-error", help="Leave out records that cannot be printed.")
    ] = False,
    enable_systest_events: Annotated[
        bool, typer.Option("--enable-systest-events", help="Print shutdown_complete at the end.")
    ] = False,
    output: Annotated[
        Output,
        typer.Option(
            metavar="<table|json>",
            help="Kafka's lines, or each record as a JSON object on its line.",
        ),
    ] = Output.TABLE,
) -> None:
    """Print the records of topics, one a line, until Ctrl-C.

    Example: `ottla console-consumer --topic orders --from-beginning --property print.key=true`.
    """
    if (topic is None) == (include is None):
        raise UsageRefused("exactly one of --topic and --include is needed")
    if partition is not None and topic is None:
        raise UsageRefused("--partition needs --topic")
    if offset is not None and partition is None:
        raise UsageRefused("--offset needs --partition")
    if offset is not None and from_beginning:
        raise UsageRefused("--from-beginning and --offset contradict each other: leave one out")
    if isolation_level not in (None, "read_committed", "read_uncommitted"):
        raise UsageRefused("--isolation-level is read_committed or read_uncommitted")

    if output is Output.CSV:
        raise UsageRefused("records are printed as table or json, not as csv")

    from ottla.cli.shared.connection import connected
    from ottla.cli.tools.console.format import Format
    from ottla.cli.tools.console.reading import Reading
    from ottla.cli.tools.console.settings import consumer_settings

    given = {**read_settings(consumer_config), **key_values("--consumer-property", consumer_property or [])}
    if isolation_level is not None:
        given["isolation.level"] = isolation_level
    if from_beginning and given.setdefault("auto.offset.reset", "earliest") != "earliest":
        raise UsageRefused(
            "Can't simultaneously specify --from-beginning and"
            f" 'auto.offset.reset={given['auto.offset.reset']}', please remove one option"
        )
    config, membership, others = consumer_settings(given)
    printed = {} if formatter_config is None else read_properties(formatter_config)
    printed |= key_values("--property", property_ or [], keeps_blanks=True)
    if key_deserializer is not None:
        printed["key.deserializer"] = key_deserializer
    if value_deserializer is not None:
        printed["value.deserializer"] = value_deserializer
    how = Format.of(printed, formatter, is_json=output is Output.JSON)
    with connected(bootstrap_server, settings=others) as client:
        name = group or given.get("group.id")
        reading = Reading(client, config, membership, how, name, skip_message_on_error)
        reading.begin(topic, include, partition, offset, from_beginning)
        try:
            reading.run(_unless_negative(max_messages), _unless_negative(timeout_ms))
        finally:
            if enable_systest_events:
                typer.echo("shutdown_complete")


def _unless_negative(limit: int | None) -> int | None:
    """A negative limit is none, as in Kafka."""
    return None if limit is None or limit < 0 else limit
