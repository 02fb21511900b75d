"""Why no broker answers is told in plain words with the next step, and a long silence while it lasts."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.cli.local.state import UpState
from ottla.cli.local.status import _state_of
from ottla.cli.shared import connection
from ottla.cli.shared.connection import _reach, connected
from ottla.cli.shared.refusal import CommandRefused
from ottla.wire.keys import ApiKey
from support.client.fake_cluster import SILENCE, FakeCluster


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    lines: list[str] = []
    monkeypatch.setattr(connection, "tell_of_waiting", lines.append)
    return lines


@pytest.fixture
def a_web_server() -> Iterator[str]:
    """Whoever connects is answered in HTTP."""
    listener = socket.create_server(("127.0.0.1", 0))

    def answer() -> None:
        while True:
            try:
                caller, _ = listener.accept()
            except OSError:
                return
            with caller:
                caller.recv(1024)
                caller.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    thread = threading.Thread(target=answer)
    thread.start()
    yield f"127.0.0.1:{listener.getsockname()[1]}"
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join()


def refused(servers: str) -> str:
    with pytest.raises(CommandRefused) as caught, connected(servers):
        pass
    return str(caught.value)


def test_a_closed_port_is_told_in_words_and_not_by_a_number_of_the_system() -> None:
    assert refused("127.0.0.1:1") == (
        "no broker answers at 127.0.0.1:1 (127.0.0.1:1: Connection refused); start a cluster with `ottla up`,"
        " or name one with --bootstrap-server"
    )


def test_somebody_who_speaks_another_protocol_is_told_as_that(a_web_server: str) -> None:
    assert f"({a_web_server}: what it sent is not Kafka's protocol: " in refused(a_web_server)


def test_where_the_cluster_is_that_of_this_directory_its_state_is_the_next_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    state = UpState(pid=1, bootstrap_servers="127.0.0.1:1", zookeeper="", broker_pids={})
    monkeypatch.setattr(connection, "read_state", lambda _directory: state)

    assert refused("127.0.0.1:1").endswith("; `ottla status` shows the state of the cluster here")


def test_brokers_that_are_silent_are_spoken_of_once_before_they_are_given_up(told: list[str]) -> None:
    cluster = FakeCluster()
    cluster.script(ApiKey.API_VERSIONS, *[SILENCE] * 50)

    failure = cluster.run(_reach(cluster.engine))

    assert failure is not None
    assert told == ["no broker has answered yet; trying for 10 s in all"]


def test_brokers_that_answer_at_once_are_not_spoken_of(told: list[str]) -> None:
    cluster = FakeCluster()

    assert cluster.run(_reach(cluster.engine)) is None
    assert told == []


def test_a_broker_that_has_ended_is_shown_with_the_way_back() -> None:
    assert _state_of(1, None, Path("ottla-data")) == "has ended; `ottla restart 1` brings it back"
