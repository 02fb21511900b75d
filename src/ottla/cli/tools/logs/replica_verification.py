"""``ottla replica-verification``: Kafka's ``kafka-replica-verification``."""

from typing import Annotated

import typer

from ottla.cli.shared.options import (
    DEFAULT_BOOTSTRAP,
    BootstrapServer,
    CommandConfig,
    Output,
    OutputOption,
    pattern,
)

app = typer.Typer(add_completion=False)


@app.command()
def replica_verification(
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    broker_list: Annotated[str | None, typer.Option(help="Kafka's name of --bootstrap-server.")] = None,
    topics_include: Annotated[
        str | None, typer.Option(help="A regular expression of topics; else all.")
    ] = None,
    topic_white_list: Annotated[str, typer.Option(help="The old name of --topics-include.")] = ".*",
    fetch_size: Annotated[int, typer.Option(min=1, help="Bytes of a partition in one request.")] = 1_048_576,
    max_wait_ms: Annotated[int, typer.Option(min=0, help="How long a broker waits for records.")] = 1_000,
    time: Annotated[
        int, typer.Option(help="Begin at a timestamp in milliseconds, -1 (the end) or -2 (the beginning).")
    ] = -1,
    report_interval_ms: Annotated[int, typer.Option(min=1, help="How often the lag is told.")] = 30_000,
    once: Annotated[
        bool, typer.Option("--once", help="End when all is compared that was there at the start.")
    ] = False,
    command_config: CommandConfig = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Compare the replicas of partitions batch by batch, up to the high watermark, until Ctrl-C.

    Exit code 1 says that replicas differ.

    Example: `ottla replica-verification --topics-include orders --time -2 --once`.
    """
    wanted = pattern("--topics-include", topics_include or topic_white_list)

    from ottla.cli.shared.connection import connected
    from ottla.cli.tools.logs.replicas_compared import Comparison

    with connected(broker_list or bootstrap_server, command_config) as client:
        comparison = Comparison(client, wanted, time, fetch_size, max_wait_ms)
        comparison.run(report_interval_ms, is_once=once, output=output)
