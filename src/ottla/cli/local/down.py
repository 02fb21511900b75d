"""``ottla down``: stop the cluster that runs here."""

import typer

from ottla.cli.local.state import DEFAULT_DATA_DIR, DataDir, UpState, require_state
from ottla.cli.shared.refusal import CommandRefused

app = typer.Typer(add_completion=False)

STOP_S_MAX = 150.0
"""Longer than all the time-outs together that `ottla up` gives its brokers, one kind after the other."""


@app.command()
def down(data_dir: DataDir = DEFAULT_DATA_DIR) -> None:
    """Stop the cluster of `ottla up` cleanly; its data stays.

    Example: `ottla down`.
    """
    import os
    import signal
    import time

    from ottla.cli.local.state import LOOK_S, is_locked

    state = require_state(data_dir)
    try:
        os.kill(state.pid, signal.SIGTERM)
    except PermissionError:
        raise CommandRefused(f"process {state.pid} belongs to another user, who must stop it") from None
    except ProcessLookupError:
        pass  # It ended a moment ago.
    give_up = time.monotonic() + STOP_S_MAX
    while is_locked(data_dir):
        if time.monotonic() > give_up:
            _have_stacks_written(state)
            raise CommandRefused(
                f"process {state.pid} did not stop within {STOP_S_MAX:.0f} s; the logs in {data_dir} end with"
                f" what it waits for, and `kill -9 {state.pid}` ends it and all its brokers, as a crash would"
            )
        time.sleep(LOOK_S)
    typer.echo(f"stopped; the data is in {data_dir.absolute()}")


def _have_stacks_written(state: UpState) -> None:
    """Each process of the cluster writes to its log where it stands."""
    import os
    import signal
    from contextlib import suppress

    for pid in (state.pid, *state.broker_pids.values()):
        if pid is not None:
            with suppress(OSError):  # it has ended
                os.kill(pid, signal.SIGUSR1)
