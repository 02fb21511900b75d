"""``/metrics`` for Prometheus and ``/health`` for whoever restarts things, over a minimal HTTP.

Two pages, read-only, one answer a connection: that needs no web framework. Imported only when
``ottla.metrics.listener`` is set.
"""

import asyncio
import json
import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from ottla.broker.observed.gauges import METRICS
from ottla.broker.observed.metric import Metric, Sample
from ottla.broker.runtime.state import BrokerState

if TYPE_CHECKING:
    from ottla.broker.node import Node

log = logging.getLogger(__name__)

ASK_SECONDS_MAX: Final = 5.0
ASK_BYTES_MAX: Final = 8 * 1024
TEXT = "text/plain; version=0.0.4; charset=utf-8"
JSON = "application/json"


def exposition(node: "Node") -> str:
    """All metrics in Prometheus' text format."""
    return "".join(line for metric in METRICS for line in _lines(metric, node))


def _lines(metric: Metric, node: "Node") -> Iterator[str]:
    yield f"# HELP {metric.name} {metric.help}\n# TYPE {metric.name} {metric.kind}\n"
    for sample in metric.read(node):
        value = f"{sample.value:.9g}" if isinstance(sample.value, float) else int(sample.value)
        yield f"{metric.name}{sample.suffix}{_labels(sample)} {value}\n"


def _labels(sample: Sample) -> str:
    if not sample.labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in sample.labels) + "}"


def _escaped(text: str) -> str:
    """Clients choose their own names."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def health(node: "Node") -> tuple[bool, dict[str, object]]:
    """Whether the broker serves, and what a person wants to know first."""
    serves = node.state is BrokerState.RUNNING
    return serves, {
        "status": "serving" if serves else "not serving",
        "state": node.state.value,
        "broker": node.broker_id,
        "broker_epoch": node.identity.broker_epoch,
        "cluster_id": node.identity.cluster_id,
        "controller": node.controller.active_controller,
        "is_controller": node.controller.is_active,
        "zookeeper_connected": node.zk.is_connected,
        "offline_replicas": node.partitions.offline_count,
    }


class MetricsEndpoint:
    """Listens on an address of its own, apart from Kafka's listeners."""

    def __init__(self, node: "Node", host: str, port: int) -> None:
        self._node = node
        self._host, self._port = host, port
        self._server: asyncio.Server | None = None

    async def open(self) -> None:
        """Begin to listen; ``OSError`` where that is impossible."""
        self._server = await asyncio.start_server(self._serve, self._host, self._port, limit=ASK_BYTES_MAX)
        port = self._server.sockets[0].getsockname()[1]
        log.info("metrics at http://%s:%d/metrics and /health", self._host, port)

    def close(self) -> None:
        """Listen no more."""
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(ASK_SECONDS_MAX):
                asked = await reader.readuntil(b"\r\n\r\n")
                writer.write(self._answer(asked))
                await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
            log.debug("a reader of metrics gave up reason=%r", error)
        finally:
            writer.close()

    def _answer(self, asked: bytes) -> bytes:
        words = asked.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
        if len(words) != 3 or not words[2].startswith("HTTP/1."):
            return _page("400 Bad Request", TEXT, "this is not an HTTP request\n")
        method, path = words[0], words[1].partition("?")[0]
        if method not in ("GET", "HEAD"):
            return _page("405 Method Not Allowed", TEXT, "only GET and HEAD are answered\n")
        match path:
            case "/metrics":
                answer = ("200 OK", TEXT, exposition(self._node))
            case "/health":
                serves, facts = health(self._node)
                answer = ("200 OK" if serves else "503 Service Unavailable", JSON, json.dumps(facts) + "\n")
            case _:
                answer = ("404 Not Found", TEXT, "there are two pages: /metrics and /health\n")
        page = _page(*answer)
        return page if method == "GET" else page[: page.index(b"\r\n\r\n") + 4]


def _page(status: str, kind: str, text: str) -> bytes:
    body = text.encode()
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
        "Allow: GET, HEAD\r\nConnection: close\r\n\r\n"
    )
    return head.encode("latin-1") + body
