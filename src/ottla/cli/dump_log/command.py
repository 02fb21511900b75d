"""``ottla dump-log``: what is in the files of a log, with the flags and in the words of Kafka's dump tool.

Kafka ends at the first file it cannot read; this goes on with the next one and ends with exit code 1.
Checkpoints and ``partition.metadata``, which Kafka's tool does not read, are printed in the same manner.
"""

from pathlib import Path
from typing import Annotated, NoReturn

import typer

app = typer.Typer(add_completion=False)

_REFUSED = "A class of Java's cannot be run here; keys and values are printed as text."


@app.command()
def dump_log(
    files: Annotated[
        str,
        typer.Option(metavar="FILE,...", help="The data and index files to print, with commas between them."),
    ],
    print_data_log: Annotated[
        bool, typer.Option("--print-data-log", help="Print keys and values too.")
    ] = False,
    deep_iteration: Annotated[
        bool, typer.Option("--deep-iteration", help="Print each record of a batch.")
    ] = False,
    skip_record_metadata: Annotated[
        bool, typer.Option("--skip-record-metadata", help="Of records print only keys and values.")
    ] = False,
    index_sanity_check: Annotated[
        bool,
        typer.Option("--index-sanity-check", help="Only check what a starting broker checks of an index."),
    ] = False,
    verify_index_only: Annotated[
        bool,
        typer.Option("--verify-index-only", help="Only compare an index with its log, without printing it."),
    ] = False,
    max_message_size: Annotated[
        int, typer.Option(min=1, help="Size of the largest batch, in bytes.")
    ] = 5_242_880,
    max_bytes: Annotated[
        int, typer.Option(min=0, help="How much of each data file to read.")
    ] = 2_147_483_647,
    offsets_decoder: Annotated[
        bool, typer.Option("--offsets-decoder", help="Print records as those of __consumer_offsets.")
    ] = False,
    transaction_log_decoder: Annotated[
        bool, typer.Option("--transaction-log-decoder", help="Print records as those of __transaction_state.")
    ] = False,
    key_decoder_class: Annotated[str | None, typer.Option(help=f"Refused. {_REFUSED}")] = None,
    value_decoder_class: Annotated[str | None, typer.Option(help=f"Refused. {_REFUSED}")] = None,
    cluster_metadata_decoder: Annotated[
        bool, typer.Option("--cluster-metadata-decoder", help="Refused. There is no KRaft metadata log here.")
    ] = False,
    remote_log_metadata_decoder: Annotated[
        bool,
        typer.Option("--remote-log-metadata-decoder", help="Refused. There is no remote log storage here."),
    ] = False,
) -> None:
    """Print segments, indexes, producer snapshots and checkpoints of a log as Kafka's dump tool does.

    Example: `ottla dump-log --files ottla-data/broker-0/logs/orders-0/00000000000000000000.log
    --print-data-log`.
    """
    from ottla.cli.dump_log.decoders import decode_group_record, decode_text, decode_transaction_record
    from ottla.cli.dump_log.format import DumpOptions, Findings, Undumpable, dump_file

    if key_decoder_class is not None:
        _refuse(f"--key-decoder-class is not supported: {_REFUSED}")
    if value_decoder_class is not None:
        _refuse(f"--value-decoder-class is not supported: {_REFUSED}")
    if cluster_metadata_decoder:
        _refuse("--cluster-metadata-decoder is not supported: there is no KRaft metadata log here.")
    if remote_log_metadata_decoder:
        _refuse("--remote-log-metadata-decoder is not supported: there is no remote log storage here.")
    print_data = print_data_log or offsets_decoder or transaction_log_decoder
    decode = decode_text
    if offsets_decoder:
        decode = decode_group_record
    elif transaction_log_decoder:
        decode = decode_transaction_record
    options = DumpOptions(
        deep=deep_iteration or print_data,
        print_data=print_data,
        skip_record_metadata=skip_record_metadata,
        index_sanity_only=index_sanity_check,
        verify_index_only=verify_index_only,
        message_bytes_max=max_message_size,
        bytes_max=max_bytes,
        decode=decode,
    )
    findings = Findings()
    failed = False
    for name in files.split(","):
        print(f"Dumping {name}")
        try:
            for line in dump_file(Path(name), options, findings):
                print(line)
        except Undumpable as error:
            typer.echo(f"ottla: {error}", err=True)
            failed = True
    for line in findings.lines():
        typer.echo(line, err=True)
    if failed:
        raise typer.Exit(1)


def _refuse(sentence: str) -> NoReturn:
    typer.echo(f"ottla: {sentence}", err=True)
    raise typer.Exit(1)
