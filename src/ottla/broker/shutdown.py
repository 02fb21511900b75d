"""The way out: leaderships moved, clients served, logs closed, registration gone."""

import logging
from typing import TYPE_CHECKING, Any

from ottla.broker.outputs import Exit, RefuseClients
from ottla.broker.peer_links import LinkLost
from ottla.model.errors import ErrorCode
from ottla.model.ids import NO_BROKER
from ottla.wire.apis.controlled_shutdown import ControlledShutdownRequest, ControlledShutdownResponse

if TYPE_CHECKING:
    from ottla.broker.node import Node

log = logging.getLogger(__name__)

LANE = "controlled-shutdown"
VERSION = 3


class Shutdown:
    """Controlled shutdown with the controller's help, then the rest without it."""

    __slots__ = ("_has_begun", "_is_stopping", "_node", "_tries_left")

    def __init__(self, node: "Node") -> None:
        self._node = node
        self._has_begun = False
        self._is_stopping = False
        self._tries_left = 0

    def begin(self) -> None:
        """Leave; a second call leaves at once, without waiting for the controller."""
        if self._has_begun:
            self._stop()
            return
        self._has_begun = True
        settings = self._node.config.shutdown
        if not self._node.is_started:
            self._node.outputs.append(Exit(0, "asked to end before the start was complete"))
        elif settings.controlled_shutdown_enable:
            self._tries_left = settings.controlled_shutdown_max_retries
            log.info("controlled shutdown broker=%d", self._node.broker_id)
            self._ask()
        else:
            self._stop()

    def _ask(self) -> None:
        controller = self._node.metadata.controller
        if self._is_stopping:
            return
        if controller == NO_BROKER:
            self._failed("no controller is known")
            return
        request = ControlledShutdownRequest(
            broker_id=self._node.broker_id, broker_epoch=self._node.registration.broker_epoch
        )
        self._node.links.get(controller, LANE).request(request, VERSION, self._answered)

    def _answered(self, response: ControlledShutdownResponse | LinkLost) -> None:
        if isinstance(response, LinkLost):
            self._failed(response.reason)
        elif response.error_code != ErrorCode.NONE:
            self._failed(ErrorCode(response.error_code).name)
        elif response.remaining_partitions:
            self._failed(f"{len(response.remaining_partitions)} partitions are still led here")
        else:
            log.info("controlled shutdown succeeded broker=%d", self._node.broker_id)
            self._node.controller.decisions.when_written(self._stop)

    def _failed(self, reason: str) -> None:
        self._tries_left -= 1
        log.warning("controlled shutdown failed reason=%s tries_left=%d", reason, self._tries_left)
        if self._tries_left <= 0:
            self._stop()
        else:
            backoff_ms = self._node.config.shutdown.controlled_shutdown_retry_backoff_ms
            self._node.timers.after(backoff_ms, self._ask)

    def _stop(self) -> None:
        """Nothing is taken on any more; what waits is answered, logs are closed, then the process ends."""
        if self._is_stopping:
            return
        self._is_stopping = True
        node = self._node
        node.outputs.append(RefuseClients())
        node.stopping()
        node.coordinator.stop()
        node.orders.stop()
        node.waiting.stop()
        node.partitions.stop()
        node.controller.stop()
        node.links.close_all("the broker stops")
        node.partitions.background.when_quiet(lambda: node.run_in_thread(node.log_dirs.close, self._closed))

    def _closed(self, outcome: Any) -> None:
        if isinstance(outcome, Exception):
            self._node.outputs.append(Exit(1, f"the logs could not be closed: {outcome}"))
        else:
            self._node.outputs.append(Exit(0, "stopped"))
