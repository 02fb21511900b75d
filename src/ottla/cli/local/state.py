"""The state of a running ``ottla up`` in its data directory, and requests to it.

``up.json`` names its processes; files in ``requests`` ask for something and vanish when it is done. Whether a
cluster runs is known by its lock, not by the file: a process id may have been reused.
"""

import fcntl
import json
import os
import shlex
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ottla.cli.shared.refusal import CommandRefused

if TYPE_CHECKING:
    from ottla.launch.cluster import Cluster

STATE_NAME = "up.json"
LOCK_NAME = "cluster.lock"
"""The launcher's, by name: every command looks here, and need not import all that starts clusters."""
LOG_NAME = "up.log"
"""What `ottla up --detach` prints."""
REQUESTS_NAME = "requests"
ANSWER_S_MAX = 60.0
LOOK_S = 0.1

DataDir = Annotated[Path, typer.Option("--data-dir", help="The data directory of the cluster.")]
DEFAULT_DATA_DIR = Path("ottla-data")


def next_command(words: str, data_dir: Path) -> str:
    """``ottla down`` as it must be typed for this directory, for a message that names the next step."""
    is_usual = data_dir.absolute() == DEFAULT_DATA_DIR.absolute()
    place = "" if is_usual else f" --data-dir {shlex.quote(str(data_dir))}"
    return f"`ottla {words}{place}`"


@dataclass(frozen=True, slots=True)
class UpState:
    """A running cluster: who runs it, and where to reach it."""

    pid: int
    bootstrap_servers: str
    zookeeper: str
    broker_pids: dict[int, int | None]
    """``None`` for a broker that has ended."""
    client_properties: str | None = None
    """The settings that a client needs, where the cluster lets nobody in without."""


def write_state(cluster: "Cluster") -> None:
    """Say who runs; replaced as a whole, so that nobody reads half of it."""
    state = {
        "pid": os.getpid(),
        "bootstrap_servers": cluster.bootstrap_servers,
        "zookeeper": cluster.zookeeper.connect,
        "client_properties": None if cluster.closed is None else str(cluster.closed.client_properties),
        "brokers": {
            str(broker.broker_id): broker.pid if broker.is_running else None for broker in cluster.brokers
        },
    }
    file = cluster.data_dir / STATE_NAME
    fresh = file.with_suffix(".new")
    fresh.write_text(json.dumps(state), encoding="utf-8")
    fresh.replace(file)


def remove_state(data_dir: Path) -> None:
    """Nothing runs any more."""
    with suppress(OSError):
        (data_dir / STATE_NAME).unlink()


def read_state(data_dir: Path) -> UpState | None:
    """The cluster that runs on a data directory, if one does."""
    owner = _lock_owner(data_dir)
    if owner is None:
        return None
    try:
        fields = json.loads((data_dir / STATE_NAME).read_text(encoding="utf-8"))
        brokers = {int(number): pid for number, pid in fields["brokers"].items()}
        needed = fields.get("client_properties")
        state = UpState(fields["pid"], fields["bootstrap_servers"], fields["zookeeper"], brokers, needed)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    # A cluster that is starting has the lock already, and the file is still that of the one before it.
    return state if str(state.pid) == owner else None


def require_state(data_dir: Path) -> UpState:
    """The same; that none runs is refused."""
    state = read_state(data_dir)
    if state is None:
        raise CommandRefused(
            f"no cluster runs on {data_dir}; start one with `ottla up --detach`, or name another --data-dir"
        )
    return state


def is_locked(data_dir: Path) -> bool:
    """Whether somebody holds the lock of a data directory."""
    return _lock_owner(data_dir) is not None


def _lock_owner(data_dir: Path) -> str | None:
    """The process that the holder of the lock wrote into it; ``None`` if nobody holds it."""
    try:
        lock = os.open(data_dir / LOCK_NAME, os.O_RDWR)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return os.pread(lock, 32, 0).decode("ascii", errors="replace").strip()
    finally:
        os.close(lock)
    return None


def ask(data_dir: Path, request: str) -> None:
    """Ask the running cluster for something, and wait until it is done."""
    file = data_dir / REQUESTS_NAME / request
    try:
        file.parent.mkdir(exist_ok=True)
        file.touch()
    except OSError as error:
        raise CommandRefused(f"{file} cannot be written: {error.strerror or error}") from None
    give_up = time.monotonic() + ANSWER_S_MAX
    while file.exists():
        if time.monotonic() > give_up or not is_locked(data_dir):
            file.unlink(missing_ok=True)
            raise CommandRefused(
                f"the cluster did not {request.replace('-', ' broker ')}; see what `ottla up` printed"
                f" ({data_dir / LOG_NAME} with --detach)"
            )
        time.sleep(LOOK_S)


def asked(data_dir: Path) -> dict[int, Path]:
    """The brokers that the running cluster is asked to restart, and the files that ask."""
    found = {}
    for file in sorted((data_dir / REQUESTS_NAME).glob("restart-*")):
        number = file.name.removeprefix("restart-")
        if number.isdecimal():
            found[int(number)] = file
    return found


def forget_requests(data_dir: Path) -> None:
    """Requests to an earlier cluster are dropped."""
    for file in asked(data_dir).values():
        file.unlink(missing_ok=True)
