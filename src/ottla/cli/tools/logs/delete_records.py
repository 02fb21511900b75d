"""``ottla delete-records``: Kafka's ``kafka-delete-records``."""

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
from ottla.cli.shared.refusal import CommandRefused

if TYPE_CHECKING:
    from ottla.model.ids import TopicPartition

app = typer.Typer(add_completion=False)


@app.command()
def delete_records(
    offset_json_file: Annotated[
        Path,
        typer.Option(
            metavar="FILE",
            help='A file like {"partitions": [{"topic": "foo", "partition": 1, "offset": 1}], "version": 1}.',
        ),
    ],
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    command_config: CommandConfig = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Delete all records before an offset; -1 stands for all that are committed.

    Example: `ottla delete-records --offset-json-file before.json`.
    """
    from ottla.cli.shared.connection import connected, reason
    from ottla.cli.shared.json_files import partition_rows
    from ottla.cli.shared.offsets import partitions_with_leader
    from ottla.cli.shared.printing import print_rows
    from ottla.client.admin.topics import delete_records

    before = {}
    for name, row in partition_rows(offset_json_file):
        offset = row.get("offset")
        if not isinstance(offset, int) or offset < -1:
            raise CommandRefused(f"{offset_json_file}: {name} has no offset")
        before[name] = offset
    with connected(bootstrap_server, command_config) as client:
        led = partitions_with_leader(client, {name.topic for name in before})
        wanted = {name: offset for name, offset in before.items() if name in led}
        if output is Output.TABLE:
            typer.echo("Executing records delete operation")
        done = client.run(delete_records, wanted) if wanted else {}
    marks: dict[TopicPartition, int] = {}
    errors: dict[TopicPartition, str] = {}
    for name in before:
        row_ = done.get(name)
        if row_ is not None and not row_.error_code:
            marks[name] = row_.low_watermark
        else:
            gone = "it does not exist or has no leader"
            errors[name] = gone if row_ is None else reason(row_.error_code)
    if output is Output.TABLE:
        typer.echo("Records delete operation completed:")
        for name in before:
            outcome = f"error: {errors[name]}" if name in errors else f"low_watermark: {marks[name]}"
            typer.echo(f"partition: {name}\t{outcome}")
    else:
        print_rows(
            [
                {"partition": str(name), "low_watermark": marks.get(name), "error": errors.get(name)}
                for name in before
            ],
            output,
        )
    if errors:
        raise CommandRefused(f"records of {len(errors)} partitions were not deleted")
