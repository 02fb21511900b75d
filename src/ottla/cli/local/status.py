"""``ottla status``: does a cluster run here?"""

import typer

from ottla.cli.local.state import DEFAULT_DATA_DIR, DataDir, require_state
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
    for number, pid in sorted(state.broker_pids.items()):
        typer.echo(f"  broker {number}: {'has ended' if pid is None else f'process {pid}'}")
