"""``ottla status``: does a cluster run here?"""

import sys
from pathlib import Path

import typer

from ottla.cli.local.console_beside import address_here
from ottla.cli.local.state import DEFAULT_DATA_DIR, DataDir, next_command, require_state
from ottla.cli.shared.options import Output, OutputOption

app = typer.Typer(add_completion=False)


@app.command()
def status(data_dir: DataDir = DEFAULT_DATA_DIR, output: OutputOption = Output.TABLE) -> None:
    """Show the cluster that `ottla up` runs on this machine; exit code 1 if there is none.

    Example: `ottla status`.
    """
    state = require_state(data_dir)
    if output is not Output.TABLE:
        from ottla.cli.shared.printing import print_rows

        print_rows(
            [
                {
                    "broker": number,
                    "pid": pid,
                    "bootstrap_servers": state.bootstrap_servers,
                    "zookeeper": state.zookeeper,
                }
                for number, pid in sorted(state.broker_pids.items())
            ],
            output,
        )
        return
    typer.echo(f"running as process {state.pid}, data in {data_dir.absolute()}")
    typer.echo(f"  bootstrap.servers  {state.bootstrap_servers}")
    typer.echo(f"  zookeeper.connect  {state.zookeeper}")
    if state.client_properties is not None:
        typer.echo(f"  for clients        {state.client_properties}")
    if (address := address_here(data_dir)) is not None:
        typer.echo(f"  console            {address}")
    for number, pid in sorted(state.broker_pids.items()):
        typer.echo(f"  broker {number}: {_state_of(number, pid, data_dir)}")


def _state_of(number: int, pid: int | None, data_dir: Path) -> str:
    """A broker's process, and how it comes back if it does not serve."""
    from ottla.launch.processes import is_frozen

    if pid is None:
        return f"has ended; {next_command(f'restart {number}', data_dir)} brings it back"
    if sys.platform == "linux" and is_frozen(pid):
        return f"process {pid}, frozen; {next_command(f'resume {number}', data_dir)} lets it go on"
    return f"process {pid}"
