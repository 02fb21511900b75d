"""The way from a process to a member of the cluster, step by step."""

import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar

from ottla.broker.outputs import AcceptClients, Exit
from ottla.broker.registration import StartRefused, attempt
from ottla.broker.zk_desk import Steps
from ottla.config.log import LogConfig
from ottla.model.ids import BrokerId
from ottla.storage.checkpoints import MetaProperties
from ottla.storage.log_dirs import CannotStart, LogDirs

if TYPE_CHECKING:
    from ottla.broker.node import Node

log = logging.getLogger(__name__)
T = TypeVar("T")


class Startup:
    """Znodes, cluster id, log directories, settings, logs, registration, controller, listeners.

    Clients are let in last: the controller keeps trying until they are.
    """

    __slots__ = ("_has_begun", "_loaded_in", "_node", "_started_ms")

    def __init__(self, node: "Node") -> None:
        self._node = node
        self._has_begun = False
        self._loaded_in = -1
        """The number of the session in which the settings were read, and are watched."""
        self._started_ms = 0

    def begin(self) -> None:
        """The edge is connecting."""
        self._started_ms = self._node.clock.monotonic_ms()

    def on_session(self) -> None:
        """ZooKeeper has given us a session; a later one finds the steps under way."""
        if not self._has_begun:
            self._has_begun = True
            self._node.zk.run(attempt(self._node.registration.prepare()), self._with_cluster_id)

    def _with_cluster_id(self, cluster_id: str | StartRefused) -> None:
        if isinstance(cluster_id, StartRefused):
            self._refuse(cluster_id)
            return
        self._node.cluster_id = cluster_id
        self._node.run_in_thread(self._lock_directories, self._with_directories)

    def _lock_directories(self) -> tuple[LogDirs, MetaProperties | None]:
        directories = LogDirs(self._node.disk, self._node.config.log_management.log_dirs)
        directories.lock()
        if not directories.live_paths:
            raise CannotStart(f"no log directory can be used: {directories.offline}")
        return directories, directories.stored_meta()

    def _with_directories(self, outcome: tuple[LogDirs, MetaProperties | None] | Exception) -> None:
        if isinstance(outcome, Exception):
            self._refuse(outcome)
            return
        self._node.log_dirs, stored = outcome
        self._node.zk.run(attempt(self._broker_id(stored)), self._with_broker_id)

    def _broker_id(self, stored: MetaProperties | None) -> Steps[BrokerId]:
        """The file's word, else what the directories remember, else a number from ZooKeeper."""
        if self._node.broker_id >= 0:
            return self._node.broker_id
        if stored is not None and stored.broker_id is not None:
            return BrokerId(stored.broker_id)
        return (yield from self._node.registration.choose_broker_id())

    def _with_broker_id(self, broker_id: BrokerId | StartRefused) -> None:
        if isinstance(broker_id, StartRefused):
            self._refuse(broker_id)
            return
        self._node.broker_id = broker_id
        self._load(self._with_settings)

    def _load(self, then: Callable[[], None]) -> None:
        self._loaded_in = self._node.zk.session_number
        self._node.features.read()
        self._node.zk.run(self._node.configs.load(), lambda _: then())

    def _with_settings(self) -> None:
        """What the thread goes by is put together here: the loop may learn of more topics meanwhile."""
        log_config, by_topic = self._node.config.log, self._node.configs.log_configs()
        self._node.run_in_thread(lambda: self._open_logs(log_config, by_topic), self._with_logs)

    def _open_logs(self, log_config: LogConfig, by_topic: dict[str, LogConfig]) -> int:
        node = self._node
        today = datetime.fromtimestamp(node.clock.wall_ms() / 1000, UTC).strftime("%a %b %d %H:%M:%S UTC %Y")
        node.log_dirs.claim(node.broker_id, node.cluster_id, today)
        node.log_dirs.open(log_config, by_topic, node.clock.wall_ms())
        return len(node.log_dirs.logs)

    def _with_logs(self, count: int | Exception) -> None:
        if isinstance(count, Exception):
            self._refuse(count)
            return
        log.info("logs are open broker=%d logs=%d", self._node.broker_id, count)
        self._node.partitions.start()
        self._register()

    def _register(self) -> None:
        """Logs may take long to open: a session that expired meanwhile has taken its watches along."""
        if self._loaded_in != self._node.zk.session_number:
            self._load(self._register)
            return
        self._node.zk.run(attempt(self._node.registration.register()), self._with_registration)

    def _with_registration(self, outcome: bool | StartRefused) -> None:
        if isinstance(outcome, StartRefused):
            self._refuse(outcome)
        elif not outcome:
            self._register()
        else:
            self._node.outputs.append(AcceptClients())
            self._node.started()
            elapsed_ms = self._node.clock.monotonic_ms() - self._started_ms
            log.info(
                "started broker=%d cluster=%s ms=%d", self._node.broker_id, self._node.cluster_id, elapsed_ms
            )

    def _refuse(self, why: Exception) -> None:
        text = str(why)
        if not isinstance(why, StartRefused | CannotStart):
            log.error("the start failed", exc_info=why)
            text = f"{type(why).__name__}: {why}"
        self._node.outputs.append(Exit(1, text))
