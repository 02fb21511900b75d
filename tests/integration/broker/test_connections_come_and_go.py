"""Clients that come and go by the thousand, politely or not: nothing of them stays."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.wire.apis.api_versions import ApiVersionsRequest
from ottla.wire.apis.metadata import MetadataRequest
from ottla.wire.headers import frame_request
from support.processes.ottla_broker import OttlaBroker
from support.running.waiting import wait_until
from support.wire.client import WireClient
from support.zookeeper.chroots import Chroots

RESET_ON_CLOSE = struct.pack("ii", 1, 0)


@pytest.fixture
def broker(chroots: Chroots, tmp_path: Path) -> Iterator[OttlaBroker]:
    running = OttlaBroker(0, chroots.make().connect, None, tmp_path / "data")
    try:
        running.start()
        yield running
    finally:
        running.stop()


def open_files(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def visit(broker: OttlaBroker, number: int) -> None:
    """One client: it asks nothing, half a question, or one whose answer it does not wait for."""
    question = b"".join(frame_request(MetadataRequest(topics=None), 12, number, "visitor"))
    with socket.create_connection(("127.0.0.1", broker.port), timeout=10) as client:
        if number % 2:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
        client.sendall(question[: (0, 3, len(question) // 2, len(question))[number % 4]])


def test_files_are_closed_whatever_way_clients_leave(broker: OttlaBroker, long_form: bool) -> None:
    with WireClient(broker.address) as steady:
        wait_until(
            lambda: steady.ask(MetadataRequest(topics=[]), 12).controller_id == 0,
            "the broker, as its own controller, is connected to itself",
        )
        before = open_files(broker.pid)

        for number in range(10_000 if long_form else 1_000):
            visit(broker, number)

        wait_until(lambda: open_files(broker.pid) <= before, "every file of a client is closed")
        assert steady.ask(ApiVersionsRequest(), 0).error_code == 0
    assert "Traceback" not in broker.log_text()
