"""``ottla kill``, ``pause``, ``resume`` and ``restart``: faults to play with, on this machine's cluster."""

from typing import TYPE_CHECKING, Annotated

import typer

from ottla.cli.local.state import DEFAULT_DATA_DIR, DataDir, UpState, ask, next_command, require_state
from ottla.cli.shared.refusal import CommandRefused

if TYPE_CHECKING:
    from pathlib import Path

kill_app = typer.Typer(add_completion=False)
pause_app = typer.Typer(add_completion=False)
resume_app = typer.Typer(add_completion=False)
restart_app = typer.Typer(add_completion=False)

BrokerNumber = Annotated[int, typer.Argument(metavar="BROKER", min=0, help="The broker's number.")]


@kill_app.command()
def kill(
    broker: BrokerNumber,
    wait: Annotated[
        bool, typer.Option("--wait", help="Stay until the others have noticed and lead its partitions.")
    ] = False,
    data_dir: DataDir = DEFAULT_DATA_DIR,
) -> None:
    """End a broker as a crash would (kill -9).

    Example: `ottla kill 0 --wait`, then `ottla describe`.
    """
    _send(data_dir, broker, "SIGKILL")
    typer.echo(f"broker {broker} is killed; {next_command(f'restart {broker}', data_dir)} brings it back")
    if wait:
        from ottla.cli.local.taking_over import await_others

        seconds = await_others(require_state(data_dir), broker)
        typer.echo(f"after {seconds:.1f} s the others have noticed, and it leads nothing any more")


@pause_app.command()
def pause(broker: BrokerNumber, data_dir: DataDir = DEFAULT_DATA_DIR) -> None:
    """Freeze a broker: its connections stay open and nothing is answered.

    Example: `ottla pause 1`.
    """
    _send(data_dir, broker, "SIGSTOP")
    typer.echo(f"broker {broker} is frozen; {next_command(f'resume {broker}', data_dir)} lets it go on")


@resume_app.command()
def resume(broker: BrokerNumber, data_dir: DataDir = DEFAULT_DATA_DIR) -> None:
    """Let a frozen broker go on.

    Example: `ottla resume 1`.
    """
    _send(data_dir, broker, "SIGCONT")
    typer.echo(f"broker {broker} goes on")


@restart_app.command()
def restart(broker: BrokerNumber, data_dir: DataDir = DEFAULT_DATA_DIR) -> None:
    """Stop a broker cleanly if it runs, and start it again.

    Example: `ottla restart 0`.
    """
    _state_with(data_dir, broker)
    ask(data_dir, f"restart-{broker}")
    if _state_with(data_dir, broker).broker_pids[broker] is None:
        log = data_dir / f"broker-{broker}" / "broker.log"
        raise CommandRefused(f"broker {broker} did not start; its log is {log}")
    typer.echo(f"broker {broker} is started")


def _state_with(data_dir: "Path", broker: int) -> UpState:
    state = require_state(data_dir)
    if broker not in state.broker_pids:
        known = ", ".join(map(str, sorted(state.broker_pids)))
        raise CommandRefused(f"the cluster has no broker {broker}; it has {known}")
    return state


def _send(data_dir: "Path", broker: int, name: str) -> None:
    import os
    import signal

    state = _state_with(data_dir, broker)
    pid = state.broker_pids[broker]
    try:
        if pid is None:
            raise ProcessLookupError
        os.kill(pid, signal.Signals[name])
    except PermissionError:
        raise CommandRefused(
            f"broker {broker} (process {pid}) belongs to another user; only that user or root may do this"
        ) from None
    except ProcessLookupError:
        remedy = next_command(f"restart {broker}", data_dir)
        raise CommandRefused(f"broker {broker} has ended; {remedy} starts it") from None
