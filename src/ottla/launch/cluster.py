"""A whole cluster on this machine: ZooKeeper and brokers, each a process of its own.

::

    with Cluster(brokers=3) as cluster:
        producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
"""

import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from ottla.config.definitions import is_password
from ottla.config.properties import properties_text
from ottla.launch.data_dir import lock_data_dir
from ottla.launch.forking.forked import IS_QUICKER, WarmProcess
from ottla.launch.ports import LOOPBACK, free_ports, require_free
from ottla.launch.processes import ALONE, KILLED, ChildProcess, GuardedProcess
from ottla.launch.refusal import LaunchRefused
from ottla.launch.zookeeper.choice import chosen_zookeeper

if TYPE_CHECKING:
    from ottla.launch.kafka_probe import ClusterSeen
    from ottla.launch.secure.doors import ClosedDoors

LOCK_NAME = "cluster.lock"
SETTINGS_NAME = "server.properties"
LOG_NAME = "broker.log"
CUTS_NAME = "cuts"
WARM_LOG_NAME = "brokers.out"
START_LIMIT_S = 60.0
STOP_LIMIT_S = 30.0
_LOOK_AGAIN_S = 0.02

ON_ONE_MACHINE = {
    "zookeeper.session.timeout.ms": "6000",
    "replica.lag.time.max.ms": "10000",
    "group.initial.rebalance.delay.ms": "0",
    "controlled.shutdown.retry.backoff.ms": "500",
}
"""Where a cluster on one machine differs from Kafka's defaults: it notices sooner that a broker died."""


class BrokerProcess:
    """One broker of the cluster."""

    def __init__(self, broker_id: int, directory: Path) -> None:
        self.broker_id = broker_id
        self.directory = directory
        self.port = 0
        self._is_asked = False
        self._process: ChildProcess | None = None

    @property
    def address(self) -> str:
        return f"{LOOPBACK}:{self.port}"

    @property
    def log(self) -> Path:
        """What the broker printed since it was started."""
        return self.directory / LOG_NAME

    @property
    def cuts(self) -> Path:
        """Lists the addresses that it cannot reach, where the cluster is cuttable."""
        return self.directory / CUTS_NAME

    @property
    def pid(self) -> int:
        return self._running().pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs."""
        return self._running().exit_code()

    @property
    def was_killed(self) -> bool:
        return self.exit_code == KILLED

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.exit_code() is None

    @property
    def is_frozen(self) -> bool:
        """Whether it is stopped by a signal, whoever sent it (where the system tells, as Linux does)."""
        if not self.is_running:
            return False
        try:
            state = Path(f"/proc/{self.pid}/stat").read_bytes().rpartition(b") ")[2]
        except OSError:
            return False
        return state.startswith((b"T", b"t"))

    def launch(self, settings: Mapping[str, str], warm: WarmProcess | None = None) -> None:
        """Start the process, forked from a warm one if there is one, and do not wait for it."""
        self.directory.mkdir(parents=True, exist_ok=True)
        file = self.directory / SETTINGS_NAME
        file.touch(mode=0o600 if any(is_password(name) for name in settings) else 0o666)
        file.write_text(properties_text(settings), encoding="utf-8")
        if self.log.exists():
            self.log.replace(self.log.with_suffix(".log.1"))
        self._is_asked = False
        if warm is not None:
            self._process = warm.fork([str(file)], output=self.log, grace_s=STOP_LIMIT_S)
            return
        command = [sys.executable, *ALONE, "-m", "ottla.server", str(file)]
        self._process = GuardedProcess(command, output=self.log, grace_s=STOP_LIMIT_S)

    def kill(self) -> None:
        """End it as a crash would."""
        self._running().kill()

    def pause(self) -> None:
        """Freeze it: its connections stay open and nothing is answered."""
        self._running().freeze()

    def resume(self) -> None:
        """Let it go on after ``pause``."""
        self._running().send(signal.SIGCONT)

    def send(self, number: signal.Signals) -> None:
        """Send it a signal, if it runs."""
        self._running().send(number)

    def ask_to_stop(self) -> None:
        """Begin its controlled shutdown; only the first call counts, a second signal would cut it short."""
        if self._is_asked or not self.is_running:
            return
        self._is_asked = True
        with suppress(ProcessLookupError):  # it ended a moment ago
            self._running().send(signal.SIGTERM)
            self._running().send(signal.SIGCONT)  # A frozen process would not get the signal.

    def stop(self) -> None:
        """Its controlled shutdown, to the end."""
        stop_together([self])

    def await_end(self, timeout_s: float) -> None:
        """Wait for the end of a controlled shutdown; after the time-out have it ended by its guard."""
        if self._process is not None:
            if self._process.wait(timeout_s) is None:
                self._process.send(signal.SIGUSR1)  # Its log then ends with where it stands.
            self._process.let_go()

    def reap(self) -> None:
        """Wait until it is gone; its guard sees to that."""
        if self._process is not None:
            self._process.stop()

    def why_it_ended(self) -> str:
        """A sentence for the user."""
        if self.was_killed:
            return f"broker {self.broker_id} was killed"
        lines = (
            self.log.read_text(encoding="utf-8", errors="replace").splitlines() if self.log.exists() else []
        )
        last = lines[-1] if lines else "it gave no reason"
        return f"broker {self.broker_id} ended with exit code {self.exit_code}: {last}; its log is {self.log}"

    def _running(self) -> ChildProcess:
        assert self._process is not None, f"broker {self.broker_id} was started"
        return self._process


def stop_together(brokers: Sequence[BrokerProcess]) -> None:
    """Controlled shutdowns side by side: brokers that hang take no longer than one of them."""
    for broker in brokers:
        broker.ask_to_stop()
    give_up = time.monotonic() + STOP_LIMIT_S
    for broker in brokers:
        broker.await_end(max(0.0, give_up - time.monotonic()))
    for broker in brokers:
        broker.reap()


class Cluster:
    """Brokers 0 to n - 1 and the ZooKeeper they share, on loopback. Everything ends with this process."""

    def __init__(
        self,
        brokers: int = 3,
        *,
        data_dir: Path | None = None,
        port: int = 0,
        zookeeper_port: int = 0,
        settings: Mapping[str, str] | None = None,
        racks: Sequence[str] = (),
        metrics_port: int = 0,
        zookeeper: str | None = None,
        sync: bool = True,
        cuttable: bool = False,
        warm: WarmProcess | None = None,
        closed: "ClosedDoors | None" = None,
    ) -> None:
        """Describe it; ``start`` or ``with`` starts it.

        Without ``data_dir`` the data is kept in a temporary directory and goes with the cluster. Broker i
        listens on ``port`` + i; 0 takes free ports, or those of the last time. ``settings`` are lines of
        every broker's server.properties. ``racks`` are given to the brokers round robin. Broker i shows
        metrics on ``metrics_port`` + i; 0 shows none. ``zookeeper`` is ``keeper`` (the built-in
        one) or ``apache``, started and stopped with the cluster, or the connect string of servers that run
        elsewhere. ``sync=False`` lets it answer
        before its data is on disk, and ``cuttable`` brokers obey their ``cuts`` file: for tests. ``warm``,
        started before, forks the brokers, and ends with the cluster.
        With ``closed`` nobody comes in without TLS and a login.
        """
        self._is_temporary = data_dir is None
        kept = data_dir.absolute() if data_dir is not None else None
        self.data_dir = kept or Path(tempfile.mkdtemp(prefix="ottla-cluster-"))
        self.zookeeper = chosen_zookeeper(
            zookeeper, self.data_dir / "zookeeper", port=zookeeper_port, sync=sync
        )
        self.brokers = [
            BrokerProcess(number, self.data_dir / f"broker-{number}") for number in range(brokers)
        ]
        self.closed = closed
        self.client_files: list[Path] = []
        self._port = port
        self._settings = dict(settings or {})
        self._racks = tuple(racks)
        self._metrics_port = metrics_port
        self._is_cuttable = cuttable
        self._lock: int | None = None
        self._warm = warm

    @property
    def bootstrap_servers(self) -> str:
        """What clients connect to."""
        return ",".join(broker.address for broker in self.brokers)

    @property
    def controller(self) -> int | None:
        """The broker that is controller, as the first broker that answers sees it; None if none does."""
        for broker in self.brokers:
            if broker.is_running and (seen := self._seen_by(broker)) is not None:
                return seen.controller if seen.controller >= 0 else None
        return None

    def start(self) -> Self:
        """Start ZooKeeper and all brokers; returns when each broker knows all the others."""
        self._check_name()
        self._lock = lock_data_dir(self.data_dir, LOCK_NAME)
        self._check_count()
        self._choose_ports()
        self._warm_up()
        try:
            self.zookeeper.start()
        except BaseException:
            self._cool_down()
            raise
        if self.closed is not None:
            self.client_files = self.closed.prepare(self.zookeeper.connect, self.bootstrap_servers)
        for broker in self.brokers:
            self.launch_broker(broker.broker_id)
        self.await_members(frozenset(broker.broker_id for broker in self.brokers))
        return self

    def launch_broker(self, number: int) -> None:
        """Start one broker, and do not wait for it."""
        broker = self.brokers[number]
        self._warm_up()
        broker.launch(self._broker_settings(broker), self._warm)

    def _warm_up(self) -> None:
        """The process that forks brokers imports them while ZooKeeper starts."""
        if IS_QUICKER and (self._warm is None or not self._warm.is_running):
            self._cool_down()
            self._warm = WarmProcess(self.data_dir / WARM_LOG_NAME)

    def _cool_down(self) -> None:
        if self._warm is not None:
            self._warm.stop()
            self._warm = None

    def start_broker(self, number: int) -> None:
        """Start one broker again, and wait until the others know it; a frozen one is not waited for."""
        self.launch_broker(number)
        frozen = frozenset(b.broker_id for b in self.brokers if b.is_frozen)
        self.await_members(frozenset(b.broker_id for b in self.brokers if b.is_running) - frozen, frozen)

    def await_members(
        self,
        wanted: frozenset[int],
        others: frozenset[int] = frozenset(),
        *,
        timeout_s: float = START_LIMIT_S,
    ) -> None:
        """Wait until each of these brokers lists exactly these brokers of ours, and a controller.

        It may also list ``others``, and any broker that is not ours where ZooKeeper is not ours.
        """
        ours = frozenset(broker.broker_id for broker in self.brokers)
        give_up = time.monotonic() + timeout_s
        waiting = [self.brokers[number] for number in sorted(wanted)]
        while waiting:
            seen = self._seen_by(waiting[0])
            known = frozenset() if seen is None else seen.brokers & (ours - others)
            if seen is not None and known == wanted and seen.controller in seen.brokers - (ours - wanted):
                waiting.pop(0)
                continue
            for broker in waiting:
                if not broker.is_running:
                    raise LaunchRefused(broker.why_it_ended())
            if time.monotonic() > give_up:
                raise LaunchRefused(
                    f"broker {waiting[0].broker_id} did not find brokers {sorted(wanted)} within"
                    f" {timeout_s:.0f} s; its log is {waiting[0].log}"
                )
            time.sleep(_LOOK_AGAIN_S)

    def stop(self) -> None:
        """Stop the brokers, the controller last: it moves leaders to those who stay; then ZooKeeper."""
        controller = self.controller
        stop_together([broker for broker in self.brokers if broker.broker_id != controller])
        stop_together(self.brokers)  # The controller, if it is one of ours.
        self.zookeeper.stop()
        self._cool_down()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
        if self._is_temporary:
            shutil.rmtree(self.data_dir, ignore_errors=True)

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

    def ended(self) -> Iterator[BrokerProcess]:
        """Brokers that were started and have ended."""
        return (broker for broker in self.brokers if not broker.is_running)

    # ---- settings

    def _broker_settings(self, broker: BrokerProcess) -> dict[str, str]:
        replicas = str(min(3, len(self.brokers)))
        return {
            "broker.id": str(broker.broker_id),
            "listeners": f"PLAINTEXT://{broker.address}",
            "zookeeper.connect": self.zookeeper.connect,
            "log.dirs": str(broker.directory / "logs"),
            "offsets.topic.replication.factor": replicas,
            "transaction.state.log.replication.factor": replicas,
            "transaction.state.log.min.isr": str(min(2, len(self.brokers))),
            **ON_ONE_MACHINE,
            **self._place_of(broker.broker_id),
            **(self.closed.settings(broker.address) if self.closed is not None else {}),
            **self._settings,
        }

    def _seen_by(self, broker: BrokerProcess) -> "ClusterSeen | None":
        from ottla.launch.kafka_probe import see_cluster  # Imported while the brokers start.

        return (self.closed.see if self.closed is not None else see_cluster)(LOOPBACK, broker.port)

    def _place_of(self, number: int) -> dict[str, str]:
        place = {}
        if self._racks:
            place["broker.rack"] = self._racks[number % len(self._racks)]
        if self._metrics_port:
            place["ottla.metrics.listener"] = f"{LOOPBACK}:{self._metrics_port + number}"
        if self._is_cuttable:
            place["ottla.cuts.file"] = str(self.brokers[number].cuts)
        return place

    def _check_name(self) -> None:
        if "," in str(self.data_dir):
            raise LaunchRefused(
                f"{self.data_dir} has a comma in its name, where log.dirs begins another directory; choose"
                " another data directory"
            )

    def _check_count(self) -> None:
        there = len(list(self.data_dir.glob(f"broker-*/{SETTINGS_NAME}")))
        if there > len(self.brokers):
            raise LaunchRefused(
                f"{self.data_dir} holds the data of {there} brokers, and {len(self.brokers)} were asked for; "
                f"start {there}, or choose another data directory"
            )

    def _choose_ports(self) -> None:
        """The asked ports, else those of the last time, else free ones; a port in use is never waited for."""
        free = iter(free_ports(len(self.brokers)))
        for broker in self.brokers:
            wanted = self._port + broker.broker_id if self._port else _last_port(broker)
            broker.port = wanted if wanted and _is_free(wanted) else next(free)


def _last_port(broker: BrokerProcess) -> int:
    try:
        lines = (broker.directory / SETTINGS_NAME).read_text(encoding="utf-8").splitlines()
    except OSError:
        return 0
    address = next((line for line in lines if line.startswith("listeners=")), "")
    digits = address.rpartition(":")[2]
    return int(digits) if digits.isdigit() else 0


def _is_free(port: int) -> bool:
    try:
        require_free(port)
    except LaunchRefused:
        return False
    return True
