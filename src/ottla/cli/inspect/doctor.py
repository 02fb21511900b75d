"""``ottla doctor``: is this machine fit for a cluster?"""

from pathlib import Path
from typing import Annotated

import typer

from ottla.cli.shared.options import Output, OutputOption
from ottla.cli.shared.refusal import CommandRefused

app = typer.Typer(add_completion=False)

DISK_BYTES_MIN = 2_000_000_000
OPEN_FILES_MIN = 4_096


@app.command()
def doctor(
    data_dir: Annotated[Path, typer.Option(help="Where the data would be kept.")] = Path("ottla-data"),
    port: Annotated[int, typer.Option(min=1, max=65_000, help="The first broker's port.")] = 9092,
    brokers: Annotated[int, typer.Option(min=1, max=100, help="How many brokers.")] = 3,
    output: OutputOption = Output.TABLE,
) -> None:
    """Look at Java, ZooKeeper, ports, disk, open files and the machine's name; exit code 1 if one is wrong.

    Example: `ottla doctor --port 9092`.
    """
    findings = [_java(), _zookeeper(), _ports(port, brokers), _disk(data_dir), _open_files(), _name()]
    if output is not Output.TABLE:
        from ottla.cli.shared.printing import print_rows

        print_rows([{"is_well": is_well, "finding": words} for is_well, words in findings], output)
    for is_well, words in findings if output is Output.TABLE else ():
        typer.echo(f"{'ok ' if is_well else 'BAD'}  {words}")
    bad = sum(not is_well for is_well, _ in findings)
    if bad:
        raise CommandRefused(f"{bad} of {len(findings)} checks failed; each says what to do")


def _java() -> tuple[bool, str]:
    from ottla.launch.java import find_java
    from ottla.launch.refusal import LaunchRefused

    try:
        java = find_java()
    except LaunchRefused as refused:
        return True, f"Java: none that is fit; `ottla up` needs none ({refused})"
    return True, f"Java {java.version} ({java.executable})"


def _zookeeper() -> tuple[bool, str]:
    from ottla.launch.refusal import LaunchRefused
    from ottla.launch.zookeeper.jars import FETCHED, FETCHED_MB, jars_here, zookeeper_version

    try:
        jars = jars_here()
    except LaunchRefused as refused:
        return False, f"ZooKeeper: {refused}"
    if not jars:
        return True, f"ZooKeeper {FETCHED[0].version} is fetched when it is first started ({FETCHED_MB} MB)"
    return True, f"ZooKeeper {zookeeper_version(jars)} ({jars[0].parent})"


def _ports(first: int, count: int) -> tuple[bool, str]:
    from ottla.launch.ports import require_free
    from ottla.launch.refusal import LaunchRefused

    for port in range(first, first + count):
        try:
            require_free(port)
        except LaunchRefused as refused:
            return False, f"ports: {refused}"
    return True, f"ports {first} to {first + count - 1} are free"


def _disk(directory: Path) -> tuple[bool, str]:
    import os
    import shutil

    there = next(path for path in (directory.absolute(), *directory.absolute().parents) if path.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        return False, f"disk: {there} cannot be written to; choose another --data-dir"
    free = shutil.disk_usage(there).free
    words = f"disk: {free / 1e9:.1f} GB free at {there}"
    if free < DISK_BYTES_MIN:
        return False, f"{words}; make room, or choose another --data-dir"
    return True, words


def _open_files() -> tuple[bool, str]:
    import resource

    # Brokers raise the soft limit themselves.
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY:
        return True, "open files: as many as there is room for"
    words = f"open files: at most {hard}"
    if hard < OPEN_FILES_MIN:
        return False, f"{words}; raise the hard limit to {OPEN_FILES_MIN} or more (limits.conf, LimitNOFILE)"
    return True, words


def _name() -> tuple[bool, str]:
    import socket

    name = socket.gethostname()
    try:
        address = socket.gethostbyname(name)
    except OSError:
        return False, f"{name} has no address: set advertised.listeners to one that clients can reach"
    if address.startswith("127."):
        return True, f"{name} is {address}: for clients elsewhere set advertised.listeners to another address"
    return True, f"{name} is {address}"
