"""Apache ZooKeeper on this machine: one server or an ensemble, on loopback, as a context manager."""

import os
import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from ottla.launch.data_dir import lock_data_dir
from ottla.launch.java import Java, find_java
from ottla.launch.ports import LOOPBACK, free_ports, require_free
from ottla.launch.processes import GuardedProcess
from ottla.launch.refusal import LaunchRefused
from ottla.launch.zookeeper.jars import FETCHED, FETCHED_MB, jars_here, zookeeper_jars, zookeeper_version
from ottla.launch.zookeeper_files import LOCK_NAME, LOG_NAME, PRINTED_NAME, fatal_error, write_files
from ottla.launch.zookeeper_probe import accepts_sessions, four_letter_word

START_LIMIT_S = 60.0
_LOOK_AGAIN_S = 0.02
_PORT_TRIES = 5
_MAIN_CLASS = "org.apache.zookeeper.server.quorum.QuorumPeerMain"

# A small heap, one compiler and one collector thread: the server starts in two thirds of a second and leaves
# the processors to the brokers.
_JVM_OPTIONS = (
    "-Xms16m",
    "-Xmx512m",
    "-Xss512k",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Xshare:auto",
)

# ``maxClientCnxns``: every client of a machine has the same address. ``tickTime`` bounds how exactly sessions
# expire; the session limits are set apart from it, so that 1 s to 60 s can be asked for.
_SETTINGS = {
    "clientPortAddress": LOOPBACK,
    "admin.enableServer": "false",
    "maxClientCnxns": "0",
    "tickTime": "500",
    "minSessionTimeout": "1000",
    "maxSessionTimeout": "60000",
    "initLimit": "20",
    "syncLimit": "10",
    "4lw.commands.whitelist": "*",
    "autopurge.snapRetainCount": "3",
    "autopurge.purgeInterval": "1",
}


class EmbeddedZooKeeper:
    """One ZooKeeper server. Its data stays in ``data_dir``; it ends with the process that started it."""

    def __init__(
        self,
        data_dir: Path,
        *,
        port: int = 0,
        sync: bool = True,
        settings: Mapping[str, str] | None = None,
        properties: Mapping[str, str] | None = None,
        java: Java | None = None,
    ) -> None:
        """Describe it; ``start`` or ``with`` starts it.

        ``port`` 0 takes a free one. ``sync=False`` leaves writing to the operating system: fast, for tests.
        ``settings`` are lines of its configuration, ``properties`` Java system properties.
        """
        self.data_dir = data_dir.absolute()
        self.port = port
        self._any_port = port == 0
        self._settings = dict(settings or {})
        self._properties = {
            "zookeeper.jmx.log4j.disable": "true",
            "log4j2.disableJmx": "true",
            **(properties or {}),
        }
        if not sync:
            self._properties["zookeeper.forceSync"] = "no"
        self._java = java
        self._process: GuardedProcess | None = None
        self._log_start = 0

    @property
    def connect(self) -> str:
        """The connect string: ``host:port``."""
        return f"{LOOPBACK}:{self.port}"

    @property
    def log(self) -> Path:
        """Where the server writes its log."""
        return self.data_dir / LOG_NAME

    @property
    def pid(self) -> int:
        """The server's process id."""
        assert self._process is not None, "the server was started"
        return self._process.pid

    @property
    def version(self) -> str:
        """The version of the ZooKeeper server, which may have to be fetched yet."""
        return zookeeper_version(jars_here() or [Path(FETCHED[0].file_name)])

    def __str__(self) -> str:
        fetched = "" if jars_here() else f"; its {FETCHED_MB} MB are fetched first"
        return f"Apache ZooKeeper {self.version} (one server, no ensemble{fetched})"

    def start(self) -> Self:
        """Start it and wait until it grants a session."""
        self.launch()
        self.await_session()
        return self

    def launch(self) -> None:
        """Start the process and do not wait for it."""
        self.stop()
        java = self._java or find_java()
        jars = zookeeper_jars()
        lock = lock_data_dir(self.data_dir, LOCK_NAME)
        try:
            self._take_port()
            config, logging = write_files(
                self.data_dir,
                {"dataDir": str(self.data_dir), "clientPort": str(self.port), **_SETTINGS, **self._settings},
            )
            self._log_start = self.log.stat().st_size if self.log.exists() else 0
            properties = {**self._properties, "log4j2.configurationFile": logging.as_uri()}
            command: list[str | Path] = [
                *(java.executable, *_JVM_OPTIONS),
                *(f"-D{name}={value}" for name, value in properties.items()),
                *("-cp", os.pathsep.join(map(str, jars)), _MAIN_CLASS, config),
            ]
            self._process = GuardedProcess(
                command,
                output=self.data_dir / PRINTED_NAME,
                environ={**os.environ, "LC_ALL": "C.UTF-8"},  # else Java finds no path beyond ASCII
                held=(lock,),
            )
        finally:
            os.close(lock)

    def await_session(self, timeout_s: float = START_LIMIT_S) -> None:
        """Wait until it grants a session; explain why when it does not."""
        give_up = time.monotonic() + timeout_s
        patience_s = 0.05
        tries = 1
        while not accepts_sessions(LOOPBACK, self.port, patience_s):
            # A server that is still loading accepts the connection and never answers: ask again soon, and
            # give slow machines more time with every try.
            patience_s = min(patience_s * 1.5, 1.0)
            if (code := self._exit_code()) is not None:
                if self._any_port and tries < _PORT_TRIES and self._port_was_taken():
                    tries += 1
                    self.port = 0
                    self.launch()
                    continue
                self.stop()
                raise LaunchRefused(self._why_it_ended(code))
            if time.monotonic() > give_up:
                self.stop()
                raise LaunchRefused(
                    f"ZooKeeper granted no session within {timeout_s:.0f} s; its log is {self.log}"
                )
            time.sleep(_LOOK_AGAIN_S)

    def stop(self) -> None:
        """Stop it; all that it acknowledged is on disk."""
        if self._process is not None:
            self._process.stop()

    def kill(self) -> None:
        """End it as a crash would."""
        if self._process is not None:
            self._process.kill()

    def pause(self) -> None:
        """Freeze it: connections stay open and nothing is answered."""
        assert self._process is not None, "the server was started"
        self._process.freeze()

    def resume(self) -> None:
        """Let it go on after ``pause``."""
        assert self._process is not None, "the server was started"
        self._process.send(signal.SIGCONT)

    def wait(self, timeout_s: float | None = None) -> int | None:
        """Wait until the server has ended; its exit code, or None when that took longer than the time-out."""
        assert self._process is not None, "the server was started"
        return self._process.wait(timeout_s)

    def mode(self) -> str:
        """``standalone``, ``leader``, ``follower``; empty while it does not serve."""
        for line in four_letter_word(LOOPBACK, self.port, "srvr").splitlines():
            if line.startswith("Mode: "):
                return line.removeprefix("Mode: ")
        return ""

    def _take_port(self) -> None:
        if self.port == 0:
            self.port = free_ports(1)[0]
        else:
            require_free(self.port)

    def _exit_code(self) -> int | None:
        return None if self._process is None else self._process.exit_code()

    def _port_was_taken(self) -> bool:
        fatal = fatal_error(self.log, self._log_start)
        return fatal is not None and fatal.port_in_use

    def _why_it_ended(self, code: int) -> str:
        fatal = fatal_error(self.log, self._log_start)
        if fatal is not None and fatal.data_is_damaged:
            return (
                f"ZooKeeper cannot read its files in {self.data_dir} ({fatal.cause}): they are damaged; "
                "restore them from a copy, or start empty after moving them away: "
                f"mv {self.data_dir} {self.data_dir}.damaged"
            )
        printed = _last_line(self.data_dir / PRINTED_NAME)
        cause = fatal.cause if fatal is not None else printed or "it gave no reason"
        return f"ZooKeeper ended with exit code {code} while starting: {cause}; its log is {self.log}"

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.stop()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


class Ensemble:
    """Several ZooKeeper servers with one leader among them, each with its own data directory."""

    def __init__(
        self,
        data_dir: Path,
        *,
        size: int = 3,
        sync: bool = True,
        settings: Mapping[str, str] | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        """Describe it; ``start`` or ``with`` starts it."""
        ports = free_ports(3 * size)
        client_ports, peer_ports = ports[:size], ports[size:]
        servers = {
            f"server.{number + 1}": f"{LOOPBACK}:{peer_ports[2 * number]}:{peer_ports[2 * number + 1]}"
            for number in range(size)
        }
        self.members = [
            EmbeddedZooKeeper(
                data_dir / f"server-{number + 1}",
                port=port,
                sync=sync,
                settings={**servers, **(settings or {})},
                properties=properties,
            )
            for number, port in enumerate(client_ports)
        ]

    @property
    def connect(self) -> str:
        """The connect string of all members."""
        return ",".join(member.connect for member in self.members)

    def start(self) -> Self:
        """Start all members and wait until each grants sessions."""
        java = find_java()
        for number, member in enumerate(self.members):
            member.data_dir.mkdir(parents=True, exist_ok=True)
            (member.data_dir / "myid").write_text(f"{number + 1}\n", encoding="ascii")
            member._java = java
            member.launch()
        for member in self.members:
            member.await_session()
        return self

    def leader(self) -> EmbeddedZooKeeper:
        """The member that leads now."""
        give_up = time.monotonic() + START_LIMIT_S
        while time.monotonic() < give_up:
            for member in self.members:
                if member.mode() == "leader":
                    return member
            time.sleep(_LOOK_AGAIN_S)
        raise LaunchRefused(
            f"no member of the ensemble {self.connect} became leader within {START_LIMIT_S:.0f} s; their logs"
            f" are {', '.join(str(member.log) for member in self.members)}"
        )

    def stop(self) -> None:
        """Stop all members."""
        for member in self.members:
            member.stop()

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.stop()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def _last_line(file: Path) -> str:
    try:
        lines: Sequence[str] = file.read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError:
        return ""
    return next((line.strip() for line in reversed(lines) if line.strip()), "")
