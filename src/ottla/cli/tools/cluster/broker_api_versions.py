"""``ottla broker-api-versions``: Kafka's ``kafka-broker-api-versions``."""

from typing import TYPE_CHECKING

import typer

from ottla.cli.shared.options import (
    DEFAULT_BOOTSTRAP,
    BootstrapServer,
    CommandConfig,
    Output,
    OutputOption,
)

if TYPE_CHECKING:
    from ottla.wire.apis.api_versions import ApiVersion
    from ottla.wire.keys import ApiKey

app = typer.Typer(add_completion=False)


@app.command()
def broker_api_versions(
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    command_config: CommandConfig = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Print which versions of which APIs each broker speaks, and the newest that this client can use.

    Example: `ottla broker-api-versions --bootstrap-server 127.0.0.1:9092`.
    """
    from ottla.cli.shared.connection import connected
    from ottla.cli.shared.printing import print_rows
    from ottla.client.admin.asking import ask_all
    from ottla.wire.apis.api_versions import ApiVersionsRequest, ApiVersionsResponse

    with connected(bootstrap_server, command_config) as client:
        request = ApiVersionsRequest(client_software_name="ottla", client_software_version="1")
        answers = client.run(ask_all, request, ApiVersionsResponse)
        brokers = client.engine.metadata.brokers
    if output is not Output.TABLE:
        print_rows(
            [
                {"broker": broker, "api": row.api_key, "min": row.min_version, "max": row.max_version}
                for broker, answer in sorted(answers.items())
                for row in answer.api_keys
            ],
            output,
        )
        return
    for number, answer in sorted(answers.items()):
        broker = brokers[number]
        lines = ",\n\t".join(api_lines(answer.api_keys))
        typer.echo(
            f"{broker.host}:{broker.port} (id: {number} rack: {_null(broker.rack)}) -> (\n\t{lines}\n)"
        )


def api_lines(rows: "list[ApiVersion]") -> list[str]:
    """One line per API, those that only we know included."""
    from ottla.wire.keys import ApiKey

    spoken = {row.api_key: row for row in rows}
    known = {int(key): key for key in ApiKey}
    lines = []
    for number in sorted({*spoken, *known}):
        key = known.get(number)
        name = "UNKNOWN" if key is None else key.spelling
        row = spoken.get(number)
        if row is None:
            lines.append(f"{name}({number}): UNSUPPORTED")
            continue
        span = f"{row.min_version}" if row.min_version == row.max_version else f"{row.min_version} to"
        span += "" if row.min_version == row.max_version else f" {row.max_version}"
        lines.append(f"{name}({number}): {span}{_usable(key, row)}")
    return lines


def _usable(key: "ApiKey | None", row: "ApiVersion") -> str:
    from ottla.wire.versions import API_VERSIONS

    if key is None:
        return ""
    low, high, _ = API_VERSIONS[key]
    usable = min(high, row.max_version)
    return (
        f" [usable: {usable}]" if usable >= max(low, row.min_version) else " [unusable: node too new or old]"
    )


def _null(text: str | None) -> str:
    return "null" if text is None else text
