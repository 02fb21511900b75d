"""``ottla perf``: Kafka's ``kafka-producer-perf-test`` and ``kafka-consumer-perf-test``."""

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from ottla.cli.shared.options import (
    DEFAULT_BOOTSTRAP,
    BootstrapServer,
    Output,
    OutputOption,
    exactly_one,
    key_values,
    read_settings,
)
from ottla.cli.shared.refusal import UsageRefused

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Measure how fast records are written and read.\n\n"
    "Example: `ottla perf produce --topic orders --num-records 100000 --record-size 100 --throughput -1`,"
    " then `ottla perf consume --topic orders --messages 100000`.",
)

PROPS = "--producer-props"


class _ManyValues(TyperCommand):
    """``--producer-props a=1 b=2`` means what it means in Kafka: all words up to the next flag."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, repeated(args, PROPS))


def repeated(args: list[str], flag: str) -> list[str]:
    """The words with the flag before each of its values."""
    words: list[str] = []
    is_inside = False
    for word in args:
        if word.startswith("-"):
            is_inside = word == flag
            if not is_inside:
                words.append(word)
        elif is_inside:
            words += [flag, word]
        else:
            words.append(word)
    return words


@app.command(cls=_ManyValues)
def produce(
    topic: Annotated[str, typer.Option(help="The topic to write to.")],
    num_records: Annotated[int, typer.Option(min=1, help="How many records.")],
    throughput: Annotated[float, typer.Option(help="Records a second, about; -1: as fast as it goes.")],
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    record_size: Annotated[int | None, typer.Option(min=1, help="Bytes of a record.")] = None,
    payload_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Records are drawn from the lines of this file.")
    ] = None,
    payload_delimiter: Annotated[str, typer.Option(help="What stands between its records.")] = "\\n",
    payload_monotonic: Annotated[
        bool, typer.Option("--payload-monotonic", help="Records are the numbers 0, 1, 2 ...")
    ] = False,
    producer_props: Annotated[
        list[str] | None,
        typer.Option(
            PROPS, metavar="NAME=VALUE ...", help="Settings of the producer, bootstrap.servers too."
        ),
    ] = None,
    producer_config: Annotated[
        Path | None, typer.Option("--producer.config", metavar="FILE", help="A file of such settings.")
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Write records and tell how many a second, and how long each took.

    Example: `ottla perf produce --topic orders --num-records 100000 --record-size 100 --throughput -1`.
    """
    exactly_one(
        {
            "--record-size": record_size,
            "--payload-file": payload_file,
            "--payload-monotonic": payload_monotonic,
        }
    )

    from ottla.cli.shared.connection import connected
    from ottla.cli.tools.console.sending import producer_settings
    from ottla.cli.tools.perf.measure import numbered_payloads, payloads_of, produce_records, random_payloads

    named = key_values(PROPS, producer_props or [])
    settings = {**read_settings(producer_config), **named}
    servers = named.get("bootstrap.servers", bootstrap_server)
    settings.setdefault("client.id", "perf-producer-client")
    config, others = producer_settings(settings)
    if record_size is not None:
        payloads = random_payloads(record_size)
    elif payload_file is not None:
        payloads = payloads_of(payload_file, payload_delimiter)
    else:
        payloads = numbered_payloads()
    with connected(servers, settings=others) as client:
        produce_records(client, config, topic, num_records, throughput, payloads, output)


@app.command()
def consume(
    topic: Annotated[str, typer.Option(help="The topic to read.")],
    messages: Annotated[int, typer.Option(min=1, help="How many records.")],
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    broker_list: Annotated[str | None, typer.Option(help="The old name of --bootstrap-server.")] = None,
    group: Annotated[str | None, typer.Option(help="The group to join; else a new one.")] = None,
    fetch_size: Annotated[int, typer.Option(min=1, help="Bytes of a partition in one request.")] = 1_048_576,
    from_latest: Annotated[
        bool, typer.Option("--from-latest", help="Without committed offsets begin at the end.")
    ] = False,
    timeout: Annotated[int, typer.Option(min=0, help="Milliseconds to wait for records.")] = 10_000,
    show_detailed_stats: Annotated[
        bool, typer.Option("--show-detailed-stats", help="A line for every interval.")
    ] = False,
    reporting_interval: Annotated[int, typer.Option(min=1, help="Milliseconds of an interval.")] = 5_000,
    date_format: Annotated[
        str, typer.Option(help="Java's letters: y M d H m s S.")
    ] = "yyyy-MM-dd HH:mm:ss:SSS",
    hide_header: Annotated[bool, typer.Option("--hide-header", help="Leave the header out.")] = False,
    consumer_config: Annotated[
        Path | None, typer.Option("--consumer.config", metavar="FILE", help="A file of settings.")
    ] = None,
    socket_buffer_size: Annotated[int, typer.Option(help="Accepted for Kafka's sake.")] = 2_097_152,
    threads: Annotated[int, typer.Option(help="Accepted for Kafka's sake.")] = 10,
    num_fetch_threads: Annotated[int, typer.Option(help="Accepted for Kafka's sake.")] = 1,
    output: OutputOption = Output.TABLE,
) -> None:
    """Read records as a member of a group, and tell how many a second.

    Example: `ottla perf consume --topic orders --messages 100000`.
    """
    from ottla.cli.shared.connection import connected
    from ottla.cli.tools.console.settings import consumer_settings
    from ottla.cli.tools.perf.measure import Reading, consume_records, time_format

    reset = "latest" if from_latest else "earliest"
    given = {"check.crcs": "false", **read_settings(consumer_config), "auto.offset.reset": reset}
    given["max.partition.fetch.bytes"] = str(fetch_size)
    config, membership, others = consumer_settings(given)
    try:
        show_time = time_format(date_format)
    except ValueError as error:
        raise UsageRefused(f"--date-format {date_format!r}: {error}") from None
    with connected(broker_list or bootstrap_server, settings=others) as client:
        consume_records(
            client,
            Reading(topic, messages, group, timeout, config, membership),
            show_time,
            interval_ms=reporting_interval if show_detailed_stats else None,
            has_header=not hide_header,
            output=output,
        )
