"""``ottla console-producer``: Kafka's ``kafka-console-producer``."""

from pathlib import Path
from typing import Annotated, ClassVar

import typer

from ottla.cli.shared.optional_values import OptionalValues
from ottla.cli.shared.options import (
    DEFAULT_BOOTSTRAP,
    BootstrapServer,
    key_values,
    read_properties,
    read_settings,
)
from ottla.cli.shared.refusal import UsageRefused

app = typer.Typer(add_completion=False)


class _Command(OptionalValues):
    stand_ins: ClassVar[dict[str, str]] = {"--compression-codec": "gzip"}


@app.command(cls=_Command)
def console_producer(
    topic: Annotated[str, typer.Option(help="The topic to write to.")],
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    broker_list: Annotated[str | None, typer.Option(help="The old name of --bootstrap-server.")] = None,
    property_: Annotated[
        list[str] | None,
        typer.Option(
            "--property",
            metavar="NAME=VALUE",
            help="How lines are read: parse.key, key.separator, parse.headers, headers.delimiter,"
            " headers.separator, headers.key.separator, null.marker, ignore.error.",
        ),
    ] = None,
    reader_config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A file of such properties.")
    ] = None,
    line_reader: Annotated[
        str, typer.Option(metavar="CLASS", help="Accepted for Kafka's sake: only LineMessageReader.")
    ] = "LineMessageReader",
    producer_property: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="A setting of the producer.")
    ] = None,
    producer_config: Annotated[
        Path | None, typer.Option("--producer.config", metavar="FILE", help="A file of such settings.")
    ] = None,
    request_required_acks: Annotated[
        str | None, typer.Option(metavar="-1|0|1|all", help="Who must have a record: acks.")
    ] = None,
    compression_codec: Annotated[
        str | None,
        typer.Option(metavar="CODEC", help="none, gzip, snappy, lz4 or zstd; gzip without a value."),
    ] = None,
    batch_size: Annotated[int | None, typer.Option(help="Bytes of a batch: batch.size.")] = None,
    timeout: Annotated[int | None, typer.Option(help="How long a batch waits: linger.ms.")] = None,
    max_block_ms: Annotated[int | None, typer.Option(help="max.block.ms.")] = None,
    max_memory_bytes: Annotated[int | None, typer.Option(help="buffer.memory.")] = None,
    message_send_max_retries: Annotated[int | None, typer.Option(help="retries.")] = None,
    request_timeout_ms: Annotated[int | None, typer.Option(help="request.timeout.ms.")] = None,
    retry_backoff_ms: Annotated[int | None, typer.Option(help="retry.backoff.ms.")] = None,
    metadata_expiry_ms: Annotated[int | None, typer.Option(help="metadata.max.age.ms.")] = None,
    max_partition_memory_bytes: Annotated[
        int | None, typer.Option(help="Accepted for Kafka's sake; --batch-size counts.")
    ] = None,
    socket_buffer_size: Annotated[int | None, typer.Option(help="Accepted for Kafka's sake.")] = None,
    sync: Annotated[bool, typer.Option("--sync", help="Wait for each record before the next.")] = False,
) -> None:
    """Write each line of standard input as a record.

    Example: `printf 'a:1' | ottla console-producer --topic orders --property parse.key=true
    --property key.separator=:`. Exit code 1 says that a record was not delivered.
    """
    from ottla.cli.shared.connection import connected
    from ottla.cli.tools.console.lines import LineReader
    from ottla.cli.tools.console.sending import producer_settings, send_lines

    if line_reader.replace("$", ".").rpartition(".")[2] != "LineMessageReader":
        raise UsageRefused(
            f"--line-reader {line_reader}: Ottla loads no Java classes; it reads lines as Kafka's"
            " LineMessageReader does, see --property"
        )
    flags: dict[str, object] = {
        "acks": request_required_acks,
        "compression.type": compression_codec,
        "batch.size": batch_size,
        "linger.ms": timeout,
        "max.block.ms": max_block_ms,
        "buffer.memory": max_memory_bytes,
        "retries": message_send_max_retries,
        "request.timeout.ms": request_timeout_ms,
        "retry.backoff.ms": retry_backoff_ms,
        "metadata.max.age.ms": metadata_expiry_ms,
    }
    given = {name: str(value) for name, value in flags.items() if value is not None}
    named = key_values("--producer-property", producer_property or [])
    settings = {**read_settings(producer_config), **named, **given}
    reading = {} if reader_config is None else read_properties(reader_config)
    reader = LineReader.of({**reading, **key_values("--property", property_ or [], keeps_blanks=True)})
    config, others = producer_settings(settings)
    with connected(broker_list or bootstrap_server, settings=others) as client:
        send_lines(client.producer(config), topic, reader, is_sync=sync)
