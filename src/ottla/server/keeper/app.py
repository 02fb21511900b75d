"""The composition root of the keeper's process: words of a command line in, a running server out."""

import argparse
import asyncio
import contextlib
import fcntl
import gc
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ottla.keeper.files.errors import FilesFailed, FilesRefused
from ottla.keeper.files.files import SNAPSHOT_EVERY, KeeperFiles
from ottla.keeper.node import Keeper, recovered_tree
from ottla.keeper.words import Report
from ottla.server.keeper.listener import KeeperConnection, KeeperEdge
from ottla.server.open_files import raise_open_files_limit
from ottla.storage.disk.port import OsDisk
from ottla.zookeeper.server.server import Server, ServerConfig

log = logging.getLogger(__name__)

BACKLOG = 128
APACHE_LOCK = "ottla-zookeeper.lock"
"""What ``ottla.launch`` locks in the directory of Apache's server."""


class KeeperRefused(Exception):
    """The keeper does not start; the text says why, and what to do."""


@dataclass(frozen=True, slots=True)
class KeeperOptions:
    """What the command line says."""

    data_dir: Path
    host: str
    port: int
    sync: bool
    snapshot_every: int
    connections_per_address: int
    words: frozenset[str]
    server: ServerConfig


def main(arguments: Sequence[str]) -> int:
    """Run a keeper until SIGTERM or Ctrl-C; the exit code of the process."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    try:
        return run_keeper(read_options(arguments))
    except (KeeperRefused, FilesRefused, FilesFailed) as refused:
        sys.stderr.write(f"ottla: {refused}\n")
        return 1


def read_options(arguments: Sequence[str]) -> KeeperOptions:
    """Read the command line of the process; ``ottla keeper`` checks and explains it to people."""
    parser = argparse.ArgumentParser(prog="python -m ottla.server.keeper", add_help=False)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=2181)
    parser.add_argument("--no-sync", action="store_true")
    parser.add_argument("--snapshot-every", type=int, default=SNAPSHOT_EVERY)
    parser.add_argument("--tick-ms", type=int, default=2_000)
    parser.add_argument("--session-ms-min", type=int, default=0)
    parser.add_argument("--session-ms-max", type=int, default=0)
    parser.add_argument("--connections-per-address", type=int, default=60)
    parser.add_argument("--words", default="srvr")
    parser.add_argument("--super-digest", default="")
    parser.add_argument("--container-check-ms", type=int, default=60_000)
    given = parser.parse_args(arguments)
    return KeeperOptions(
        data_dir=given.data_dir,
        host=given.host,
        port=given.port,
        sync=not given.no_sync,
        snapshot_every=given.snapshot_every,
        connections_per_address=given.connections_per_address,
        words=frozenset(word.strip() for word in given.words.split(",")),
        server=ServerConfig(
            tick_ms=given.tick_ms,
            session_ms_min=given.session_ms_min,
            session_ms_max=given.session_ms_max,
            super_digest=given.super_digest,
            container_check_ms=given.container_check_ms,
        ),
    )


def run_keeper(options: KeeperOptions) -> int:
    """Serve until told to end; without room for a file beside the clients' sockets a keeper cannot write."""
    raise_open_files_limit()
    listening = listen(options.host, options.port)
    hold_directory(options.data_dir)
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(_serve(options, listening))


def listen(host: str, port: int) -> socket.socket:
    """A socket on the loopback address alone: one server must not look like an ensemble."""
    if host not in ("127.0.0.1", "localhost", "::1"):
        raise KeeperRefused(
            f"the built-in keeper does not listen on {host}, only on 127.0.0.1 or ::1: it is one server, "
            "without failover; for brokers on several machines run an ensemble of Apache ZooKeeper"
        )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        raise KeeperRefused(
            f"{host}:{port} cannot be listened on ({error.strerror}): another server may be running there; "
            "choose another --port, or 0 for a free one"
        ) from None
    listening.setblocking(False)
    return listening


def hold_directory(data_dir: Path) -> None:
    """Keep Apache's server, which Ottla starts on the same directories, away until this process ends."""
    try:
        data_dir.mkdir(parents=True, exist_ok=True)
        lock = os.open(data_dir / APACHE_LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise KeeperRefused(
            f"cannot keep data in {data_dir} ({error.strerror}); choose another --data-dir"
        ) from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        holder = os.pread(lock, 32, 0).decode("ascii", errors="replace").strip() or "unknown"
        raise KeeperRefused(
            f"the data directory {data_dir} is in use by a server that process {holder} started; "
            "stop that one, or choose another --data-dir"
        ) from None
    os.ftruncate(lock, 0)
    os.pwrite(lock, f"{os.getpid()}\n".encode("ascii"), 0)


def _loop_factory() -> "type[asyncio.AbstractEventLoop] | None":
    with contextlib.suppress(ImportError):
        import uvloop

        return uvloop.new_event_loop  # type: ignore[return-value]
    return None


async def _serve(options: KeeperOptions, listening: socket.socket) -> int:
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[int] = loop.create_future()
    files = KeeperFiles(
        OsDisk(),
        str(options.data_dir.absolute()),
        syncs=options.sync,
        snapshot_every=options.snapshot_every,
    )
    tree = recovered_tree(files)
    now_ms, wall_ms = int(loop.time() * 1000), time.time_ns() // 1_000_000
    server = Server(options.server, tree, now_ms, wall_ms)
    host, port = listening.getsockname()[:2]
    keeper = Keeper(server, files, Report(server, options.words, shown_settings(options, port)))
    gc.collect()
    gc.freeze()
    edge = KeeperEdge(loop, keeper, options.connections_per_address, partial(_fail, ended))
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, partial(_end, ended, 0))
    accepting = await loop.create_server(lambda: KeeperConnection(edge), sock=listening, backlog=BACKLOG)
    sys.stdout.write(f"keeper listening on {host}:{port}, data in {options.data_dir}\n")
    sys.stdout.flush()
    code = await ended
    accepting.close()
    edge.end()
    keeper.close()
    return code


def shown_settings(options: KeeperOptions, port: int) -> dict[str, object]:
    """What ``conf`` shows, by the names of Apache's server."""
    config = options.server
    return {
        "clientPort": port,
        "dataDir": options.data_dir / "version-2",
        "tickTime": config.tick_ms,
        "maxClientCnxns": options.connections_per_address,
        "minSessionTimeout": config.negotiated_ms(0),
        "maxSessionTimeout": config.negotiated_ms(2**31 - 1),
        "serverId": 0,
    }


def _end(ended: "asyncio.Future[int]", code: int) -> None:
    if not ended.done():
        ended.set_result(code)


def _fail(ended: "asyncio.Future[int]", error: Exception) -> None:
    if isinstance(error, FilesFailed):
        log.error("the keeper ends: it %s", error)
    else:
        log.error("the keeper ends: it could not write down what it decided", exc_info=error)
    _end(ended, 1)
