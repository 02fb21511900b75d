"""``ottla up --detach``: the same in the background; returns when it serves."""

import subprocess
import sys
import time
from pathlib import Path

import typer

from ottla.cli.local.console_beside import address_here
from ottla.cli.local.state import LOG_NAME, LOOK_S, UpState, next_command, read_state
from ottla.cli.shared.refusal import CommandRefused
from ottla.cli.shared.waiting import PATIENCE_S, tell_of_waiting
from ottla.launch.processes import ALONE

READY_S_MAX = 90.0


def start_detached(data_dir: Path, words: list[str]) -> None:
    """Start ``ottla up`` in a session of its own; returns when its brokers know one another."""
    log = data_dir / LOG_NAME
    try:
        data_dir.mkdir(parents=True, exist_ok=True)
        output = log.open("ab")  # Another start at the same moment may write there, too.
        begun_at = output.tell()
    except OSError as error:
        raise CommandRefused(
            f"cannot keep data in {data_dir} ({error.strerror}); choose another data directory"
        ) from None
    with output:
        process = subprocess.Popen(
            [sys.executable, *ALONE, "-m", "ottla.cli.main", "up", *words],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        state = _serving(process, data_dir, log, begun_at)
    except KeyboardInterrupt:
        process.terminate()
        process.wait()
        typer.echo("ottla: the cluster was stopped before it was ready", err=True)
        raise
    typer.echo(f"running as process {process.pid}; {next_command('down', data_dir)} stops it")
    typer.echo(f"  bootstrap.servers  {state.bootstrap_servers}")
    typer.echo(f"  zookeeper.connect  {state.zookeeper}")
    if state.client_properties is not None:
        typer.echo(f"  for clients        {state.client_properties}")
    if (address := address_here(data_dir)) is not None:
        typer.echo(f"  console            {address}")


def _serving(process: subprocess.Popen[bytes], data_dir: Path, log: Path, begun_at: int) -> UpState:
    """The cluster's state, as soon as it serves."""
    began = time.monotonic()
    give_up = began + READY_S_MAX
    is_told = False
    while (state := read_state(data_dir)) is None or state.pid != process.pid:
        if process.poll() is not None:
            lines = log.read_bytes()[begun_at:].decode(errors="replace").splitlines()
            last = lines[-1].removeprefix("ottla: ") if lines else "it gave no reason"
            raise CommandRefused(f"the cluster did not start: {last}; its log is {log}")
        if time.monotonic() > give_up:
            process.terminate()
            raise CommandRefused(f"the cluster was not ready within {READY_S_MAX:.0f} s; its log is {log}")
        if not is_told and time.monotonic() > began + PATIENCE_S:
            is_told = True
            tell_of_waiting(f"starting ZooKeeper and brokers; their log is {log}")
        time.sleep(LOOK_S)
    return state
