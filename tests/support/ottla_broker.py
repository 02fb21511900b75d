"""An Ottla broker as a real process, with the same handles as an Apache one."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from support.apache import brokers_known_to
from support.java_process import JavaProcess
from support.ports import free_port
from support.waiting import wait_until

HOST = "127.0.0.1"
START_SECONDS_MAX = 60
BROKER_DEFAULTS: dict[str, object] = {
    "offsets.topic.replication.factor": 1,
    "offsets.topic.num.partitions": 5,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "transaction.state.log.num.partitions": 5,
    "group.initial.rebalance.delay.ms": 0,
    "zookeeper.session.timeout.ms": 6_000,
    "controlled.shutdown.retry.backoff.ms": 200,
}


class OttlaBroker:
    """One broker; settings by Kafka's name, with ``_`` or ``.`` between the words."""

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
        self.log_dir = log_dir or Path(tempfile.mkdtemp(prefix=f"ottla-{broker_id}-")) / "data"
        self.run_dir = self.log_dir.parent / f"{self.log_dir.name}-run"
        self.log_file = self.run_dir / "broker.log"
        self._props: dict[str, object] = {
            "broker.id": broker_id,
            "listeners": f"PLAINTEXT://{self.address}",
            "zookeeper.connect": zk_connect,
            "log.dirs": self.log_dir,
            **BROKER_DEFAULTS,
            **{name.replace("_", "."): value for name, value in props.items()},
        }
        self._process: JavaProcess | None = None

    def launch(self) -> None:
        """Start the process without waiting for it."""
        self.run_dir.mkdir(parents=True, exist_ok=True)
        settings = self.run_dir / "server.properties"
        settings.write_text("".join(f"{name}={_as_text(value)}\n" for name, value in self._props.items()))
        command = [sys.executable, "-W", "error", "-m", "ottla.server", str(settings)]
        self._process = JavaProcess(command, self.log_file)

    def wait_usable(self, brokers: frozenset[int] | set[int] | None = None) -> None:
        """Wait until this broker's own Metadata lists these brokers (itself, if none are named)."""
        expected = frozenset(brokers or {self.broker_id})
        process = self._running()

        def lists_all() -> bool:
            assert process.is_running, f"broker {self.broker_id} ended at start:\n{self.log_tail()}"
            return expected <= brokers_known_to(self.port)

        wait_until(lists_all, f"broker {self.broker_id} lists brokers {sorted(expected)}", START_SECONDS_MAX)

    def start(self, brokers: frozenset[int] | set[int] | None = None) -> None:
        """Start and wait until usable."""
        self.launch()
        self.wait_usable(brokers)

    restart = start
    """It waits for the end of its own last session by itself."""

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


@contextmanager
def ottla_brokers(*brokers: OttlaBroker) -> Iterator[None]:
    """The brokers run for the length of a ``with``, all usable at its start."""
    try:
        for broker in brokers:
            broker.launch()
        for broker in brokers:
            broker.wait_usable({each.broker_id for each in brokers})
        yield
    finally:
        for broker in brokers:
            broker.stop()


def _as_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
