"""A broker as a real process: the handles that Ottla's and Apache's have in common."""

from __future__ import annotations

import socket
import struct
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from contextlib import closing
from pathlib import Path

from support.processes.java_process import JavaProcess
from support.processes.ports import free_port
from support.running.waiting import wait_until

HOST = "127.0.0.1"
START_SECONDS_MAX = 180
ZK_SESSION_TIMEOUT_MS = 6_000
DEFAULTS: dict[str, object] = {
    "offsets.topic.replication.factor": 1,
    "offsets.topic.num.partitions": 5,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "transaction.state.log.num.partitions": 5,
    "group.initial.rebalance.delay.ms": 0,
    "zookeeper.session.timeout.ms": ZK_SESSION_TIMEOUT_MS,
    # Otherwise as long as a session: a broker that starts on a busy machine would end before it has one.
    "zookeeper.connection.timeout.ms": 60_000,
    "controlled.shutdown.retry.backoff.ms": 200,
}


class BrokerProcess(ABC):
    """One broker; settings by Kafka's name, with ``_`` or ``.`` between the words."""

    kind = ""
    defaults: Mapping[str, object] = DEFAULTS

    def __init__(
        self,
        broker_id: int,
        zk_connect: str,
        port: int | None = None,
        log_dir: Path | None = None,
        **props: object,
    ) -> None:
        self.broker_id = broker_id
        self.zk_connect = zk_connect
        self.port = port or free_port()
        self.address = f"{HOST}:{self.port}"
        self.log_dir = log_dir or Path(tempfile.mkdtemp(prefix=f"{self.kind}-{broker_id}-")) / "data"
        self.run_dir = self.log_dir.parent / f"{self.log_dir.name}-run"
        self.log_file = self.run_dir / "broker.log"
        self._props: dict[str, object] = {
            "broker.id": broker_id,
            "listeners": f"PLAINTEXT://{self.address}",
            "zookeeper.connect": zk_connect,
            "log.dirs": self.log_dir,
            **self.defaults,
            **{name.replace("_", "."): value for name, value in props.items()},
        }
        self._process: JavaProcess | None = None
        self._life_starts_at = 0

    @abstractmethod
    def command(self, settings: Path) -> list[str]:
        """What is run."""

    def launch(self) -> None:
        """Start the process without waiting for it."""
        self.run_dir.mkdir(parents=True, exist_ok=True)
        settings = self.run_dir / "server.properties"
        settings.write_text("".join(f"{name}={_as_text(value)}\n" for name, value in self._props.items()))
        self._life_starts_at = len(self.log_text()) if self.log_file.exists() else 0
        self._process = JavaProcess(self.command(settings), self.log_file)

    def wait_usable(
        self,
        brokers: frozenset[int] | set[int] | None = None,
        beside: Collection[BrokerProcess] = (),
    ) -> None:
        """Wait until this broker's own Metadata lists these brokers (itself, if none are named).

        If one of those that start ``beside`` it has ended, there is nothing to wait for.
        """
        expected = frozenset(brokers or {self.broker_id})
        starting = (self, *beside)

        def lists_all() -> bool:
            for each in starting:
                assert each.is_running, f"broker {each.broker_id} ended at start:\n{each.log_tail()}"
            return expected <= brokers_known_to(self.port)

        def how_it_stands() -> str:
            logs = "\n".join(f"broker {each.broker_id}:\n{each.log_tail()}" for each in starting)
            known = sorted(brokers_known_to(self.port))
            return f"broker {self.broker_id} lists brokers {sorted(expected)}, not {known}\n{logs}"

        wait_until(lists_all, how_it_stands, START_SECONDS_MAX)

    def start(self, brokers: frozenset[int] | set[int] | None = None) -> None:
        """Start and wait until usable."""
        self.launch()
        self.wait_usable(brokers)

    def restart(self, brokers: frozenset[int] | set[int] | None = None) -> None:
        """Start again after a stop or a kill."""
        self.start(brokers)

    def kill(self) -> None:
        """kill -9."""
        self._running().kill()

    def pause(self) -> None:
        """SIGSTOP."""
        self._running().pause()

    def resume(self) -> None:
        """SIGCONT."""
        self._running().resume()

    def shut_down(self) -> int:
        """A controlled shutdown by SIGTERM; the exit code."""
        return self._running().terminate()

    def exit_code(self, seconds_max: float = START_SECONDS_MAX) -> int:
        """Wait for the end of the process."""
        return self._running().exit_code(seconds_max)

    def stop(self) -> None:
        """End it in whatever state it is; for the end of a test."""
        if self._process is not None:
            self._process.kill()

    def settings(self) -> Mapping[str, object]:
        return self._props

    def change_settings(self, **props: object) -> None:
        """Other settings, from the next start on."""
        self._props.update({name.replace("_", "."): value for name, value in props.items()})

    def log_text(self) -> str:
        """Everything the broker has logged, over all its lives."""
        return self.log_file.read_text(errors="replace")

    def log_of_this_life(self) -> str:
        """What it has logged since it was started last."""
        return self.log_text()[self._life_starts_at :]

    def log_tail(self) -> str:
        return self.log_text()[-4_000:]

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.is_running

    @property
    def pid(self) -> int:
        return self._running().pid

    def _running(self) -> JavaProcess:
        assert self._process is not None, f"broker {self.broker_id} was never started"
        return self._process


def wait_all_usable(brokers: Collection[BrokerProcess]) -> None:
    """Wait until each of these, which start together, lists all of them."""
    for broker in brokers:
        broker.wait_usable(frozenset(each.broker_id for each in brokers), beside=brokers)


def brokers_known_to(port: int) -> frozenset[int]:
    """The broker ids in a broker's Metadata answer (v1, written by hand: nothing of ours is trusted here)."""
    header = struct.pack(">hhih", 3, 1, 7, -1)
    try:
        with closing(socket.create_connection((HOST, port), timeout=2)) as connection:
            connection.settimeout(5)
            connection.sendall(struct.pack(">i", len(header) + 4) + header + struct.pack(">i", 0))
            file = connection.makefile("rb")
            size = struct.unpack(">i", file.read(4))[0]
            body = file.read(size)
    except (OSError, struct.error):
        return frozenset()
    count = struct.unpack_from(">i", body, 4)[0]
    position, ids = 8, set()
    for _ in range(count):
        broker_id, host_length = struct.unpack_from(">ih", body, position)
        position += 6 + host_length + 4
        rack_length = struct.unpack_from(">h", body, position)[0]
        position += 2 + max(rack_length, 0)
        ids.add(broker_id)
    return frozenset(ids)


def _as_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
