"""The way from a process to a member of the cluster, step by step."""

import logging
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar

from ottla.broker.access.rule_store import RuleStore
from ottla.broker.life.registration import Registration, StartRefused
from ottla.broker.metadata.features import Features
from ottla.broker.outputs import AcceptClients, Exit
from ottla.broker.runtime.runtime import Runtime
from ottla.broker.runtime.tasks import Answer, Steps
from ottla.broker.settings.dynamic import DynamicConfigs
from ottla.config.log import LogConfig
from ottla.model.ids import BrokerId
from ottla.storage.directories.log_dirs import LogDirs
from ottla.storage.directories.opening import CannotStart
from ottla.storage.disk.checkpoints import MetaProperties

log = logging.getLogger(__name__)
T = TypeVar("T")


class Startup:
    """Znodes, cluster id, log directories, settings, logs, registration, controller, listeners.

    Clients are let in last: the controller keeps trying until they are.
    """

    def __init__(
        self,
        runtime: Runtime,
        log_dirs: LogDirs,
        registration: Registration,
        features: Features,
        configs: DynamicConfigs,
        rule_store: RuleStore | None,
        start_replicas: Callable[[], None],
        started: Callable[[], None],
    ) -> None:
        """``start_replicas`` is called when the logs are open, ``started`` when the broker is a member."""
        self._runtime = runtime
        self._log_dirs = log_dirs
        self._registration = registration
        self._features = features
        self._configs = configs
        self._rule_store = rule_store
        self._start_replicas = start_replicas
        self._started = started
        self._has_begun = False
        self._started_ms = 0

    def begin(self) -> None:
        """The edge is connecting."""
        self._started_ms = self._runtime.clock.monotonic_ms()

    def on_session(self) -> None:
        """ZooKeeper has given us a session; a later one finds the steps under way."""
        if not self._has_begun:
            self._has_begun = True
            self._runtime.own.spawn(self._start())

    def _start(self) -> Steps[None]:
        try:
            yield from self._join()
        except StartRefused as refused:
            self._runtime.outputs.append(Exit(1, str(refused)))
            return
        identity = self._runtime.identity
        self._runtime.outputs.append(AcceptClients())
        self._started()
        elapsed_ms = self._runtime.clock.monotonic_ms() - self._started_ms
        log.info("started broker=%d cluster=%s ms=%d", identity.broker_id, identity.cluster_id, elapsed_ms)

    def _join(self) -> Steps[None]:
        """Become a member of the cluster, or raise ``StartRefused``."""
        runtime, identity = self._runtime, self._runtime.identity
        identity.cluster_id = yield from self._registration.prepare()
        stored = yield from self._in_thread(self._lock_directories)
        identity.broker_id = yield from self._broker_id(stored)
        session = yield from self._read_settings()
        # Put together here: the loop may learn of more topics while the thread opens logs.
        log_config, by_topic = runtime.config.log, self._configs.log_configs()
        count = yield from self._in_thread(lambda: self._open_logs(log_config, by_topic))
        log.info("logs are open broker=%d logs=%d", identity.broker_id, count)
        self._start_replicas()
        is_member = False
        while not is_member:
            if session != runtime.zk.session_number:  # it expired meanwhile and took its watches along
                session = yield from self._read_settings()
            else:
                is_member = yield from self._registration.register()

    def _in_thread(self, work: Callable[[], T]) -> Steps[T]:
        """What the work returns; ``StartRefused`` when it raises."""
        outcome: T | Exception = yield Answer(partial(self._runtime.threads.run, work))
        if isinstance(outcome, CannotStart):
            raise StartRefused(str(outcome)) from outcome
        if isinstance(outcome, Exception):
            log.error("the start failed", exc_info=outcome)
            raise StartRefused(f"{type(outcome).__name__}: {outcome}") from outcome
        return outcome

    def _lock_directories(self) -> MetaProperties | None:
        self._log_dirs.lock()
        if not self._log_dirs.live_paths:
            raise CannotStart(f"no log directory can be used: {self._log_dirs.offline}")
        return self._log_dirs.stored_meta()

    def _broker_id(self, stored: MetaProperties | None) -> Steps[BrokerId]:
        """The file's word, else what the directories remember, else a number from ZooKeeper."""
        if self._runtime.identity.broker_id >= 0:
            return self._runtime.identity.broker_id
        if stored is not None and stored.broker_id is not None:
            return BrokerId(stored.broker_id)
        return (yield from self._registration.choose_broker_id())

    def _read_settings(self) -> Steps[int]:
        """Returns the number of the session in which they were read, and are watched."""
        session = self._runtime.zk.session_number
        self._features.read()
        yield from self._configs.load()
        if self._rule_store is not None:
            yield from self._rule_store.load()
        return session

    def _open_logs(self, log_config: LogConfig, by_topic: dict[str, LogConfig]) -> int:
        identity, now_ms = self._runtime.identity, self._runtime.clock.wall_ms()
        today = datetime.fromtimestamp(now_ms / 1000, UTC).strftime("%a %b %d %H:%M:%S UTC %Y")
        self._log_dirs.claim(identity.broker_id, identity.cluster_id, today)
        self._log_dirs.open(log_config, by_topic, self._runtime.clock.wall_ms())
        return len(self._log_dirs.logs)
