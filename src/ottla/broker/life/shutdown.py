"""The way out: leaderships moved, clients served, logs closed, registration gone."""

import logging
from collections.abc import Callable
from typing import Any

from ottla.broker.metadata.image import MetadataImage
from ottla.broker.outputs import Exit, RefuseClients
from ottla.broker.peers.links import LinkLost, PeerLinks
from ottla.broker.runtime.runtime import Runtime
from ottla.broker.runtime.tasks import Answer, Pause, Steps
from ottla.model.errors import ErrorCode
from ottla.model.ids import NO_BROKER
from ottla.storage.directories.log_dirs import LogDirs
from ottla.wire.apis.controlled_shutdown import ControlledShutdownRequest, ControlledShutdownResponse

log = logging.getLogger(__name__)

LANE = "controlled-shutdown"
VERSION = 3


class Shutdown:
    """Controlled shutdown with the controller's help, then the rest without it."""

    def __init__(
        self,
        runtime: Runtime,
        metadata: MetadataImage,
        links: PeerLinks,
        log_dirs: LogDirs,
        *,
        when_written: Callable[[Callable[[], None]], None],
        stop_rooms: Callable[[], None],
        when_quiet: Callable[[Callable[[], None]], None],
    ) -> None:
        """``when_written``: the decision log has written what it holds; ``when_quiet``: no thread works on
        a log any more."""
        self._runtime = runtime
        self._metadata = metadata
        self._links = links
        self._log_dirs = log_dirs
        self._when_written = when_written
        self._stop_rooms = stop_rooms
        self._when_quiet = when_quiet
        self._has_begun = False
        self._is_stopping = False

    def begin(self) -> None:
        """Leave; a second call leaves at once, without waiting for the controller."""
        if self._has_begun:
            self._stop()
            return
        self._has_begun = True
        if not self._runtime.identity.is_registered:
            self._runtime.outputs.append(Exit(0, "asked to end before the start was complete"))
        elif self._runtime.config.shutdown.controlled_shutdown_enable:
            log.info("controlled shutdown broker=%d", self._runtime.identity.broker_id)
            self._runtime.own.spawn(self._leave())
        else:
            self._stop()

    def _leave(self) -> Steps[None]:
        """Ask the controller to move what this broker leads, as often as the settings say."""
        settings = self._runtime.config.shutdown
        tries_left = settings.controlled_shutdown_max_retries
        while not self._is_stopping:
            why_not = yield from self._ask()
            if why_not is None:
                log.info("controlled shutdown succeeded broker=%d", self._runtime.identity.broker_id)
                self._when_written(self._stop)
                return
            tries_left -= 1
            log.warning("controlled shutdown failed reason=%s tries_left=%d", why_not, tries_left)
            if tries_left <= 0:
                self._stop()
            else:
                yield Pause(settings.controlled_shutdown_retry_backoff_ms)

    def _ask(self) -> Steps[str | None]:
        """Why this broker may not leave yet."""
        controller = self._metadata.controller
        if controller == NO_BROKER:
            return "no controller is known"
        identity = self._runtime.identity
        request = ControlledShutdownRequest(broker_id=identity.broker_id, broker_epoch=identity.broker_epoch)
        link = self._links.get(controller, LANE)
        response: ControlledShutdownResponse | LinkLost = yield Answer(
            lambda then: link.request(request, VERSION, then)
        )
        if isinstance(response, LinkLost):
            return response.reason
        if response.error_code != ErrorCode.NONE:
            return ErrorCode(response.error_code).name
        if response.remaining_partitions:
            return f"{len(response.remaining_partitions)} partitions are still led here"
        return None

    def _stop(self) -> None:
        """Nothing is taken on any more; what waits is answered, logs are closed, then the process ends."""
        if self._is_stopping:
            return
        self._is_stopping = True
        self._runtime.outputs.append(RefuseClients())
        self._stop_rooms()
        self._when_quiet(lambda: self._runtime.threads.run(self._log_dirs.close, self._closed))

    def _closed(self, outcome: Any) -> None:
        if isinstance(outcome, Exception):
            self._runtime.outputs.append(Exit(1, f"the logs could not be closed: {outcome}"))
        else:
            self._runtime.outputs.append(Exit(0, "stopped"))
