"""The blocking client's loop: what it does first when its program comes back to it."""

import contextlib
import socket
import threading

import pytest

from ottla.client.blocking.client import Client
from ottla.client.config import ClientConfig
from ottla.client.engine.engine import Engine
from ottla.client.engine.tasks import ANY_BROKER, Operation, ask
from ottla.wire.apis.api_versions import ApiVersion, ApiVersionsResponse
from ottla.wire.apis.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from ottla.wire.apis.metadata import MetadataResponse
from ottla.wire.headers import decode_request_header, frame_response
from ottla.wire.keys import ApiKey
from ottla.wire.versions import API_VERSIONS

REQUEST_TIMEOUT_MS = 5_000
ANSWERS = {
    ApiKey.API_VERSIONS: ApiVersionsResponse(
        api_keys=[
            ApiVersion(api_key=k, min_version=v.first, max_version=v.last) for k, v in API_VERSIONS.items()
        ]
    ),
    ApiKey.METADATA: MetadataResponse(),
    ApiKey.LIST_GROUPS: ListGroupsResponse(groups=[ListedGroup(group_id="g")]),
}


def answer_all(listener: socket.socket, is_sent: threading.Event, is_answered: threading.Event) -> None:
    """A broker that answers one client until it hangs up, and ListGroups when it has been sent for long."""
    connection, _ = listener.accept()
    with connection, connection.makefile("rb") as stream, contextlib.suppress(ConnectionResetError):
        while len(size := stream.read(4)) == 4:
            header, _ = decode_request_header(stream.read(int.from_bytes(size, "big")))
            response = ANSWERS[ApiKey(header.api_key)]
            frame = b"".join(frame_response(response, header.api_version, header.correlation_id))
            if header.api_key == ApiKey.LIST_GROUPS:
                is_sent.wait(10)
            connection.sendall(frame)
            if header.api_key == ApiKey.LIST_GROUPS:
                is_answered.set()


class SlowBroker(threading.Event):
    """To be waited for before an answer: its clock goes on so long."""

    def __init__(self) -> None:
        super().__init__()
        self.now_ms = Client.now_ms()

    def wait(self, timeout: float | None = None) -> bool:
        self.now_ms += REQUEST_TIMEOUT_MS - 1
        return True


def ask_and_look_at_the_clock(engine: Engine) -> Operation[int]:
    yield from ask(ANY_BROKER, ListGroupsRequest(), ListGroupsResponse)
    return engine.now_ms


def test_who_goes_on_with_an_answer_has_all_its_time_from_then_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the next request is late before it is sent: its time began when the last one was sent."""
    clock = SlowBroker()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=answer_all, args=(listener, clock, threading.Event()))
        thread.start()
        monkeypatch.setattr("ottla.client.blocking.client._monotonic_ms", lambda: clock.now_ms)
        config = ClientConfig(
            bootstrap_servers=(listener.getsockname(),), request_timeout_ms=REQUEST_TIMEOUT_MS
        )
        with Client(config) as client:
            assert client.run(ask_and_look_at_the_clock) == clock.now_ms
        thread.join(10)


def test_an_answer_that_lay_in_the_socket_is_not_late_however_long_the_program_was_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    is_sent, is_answered = threading.Event(), threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=answer_all, args=(listener, is_sent, is_answered))
        thread.start()
        config = ClientConfig(
            bootstrap_servers=(listener.getsockname(),), request_timeout_ms=REQUEST_TIMEOUT_MS
        )
        with Client(config) as client:
            client.run(lambda engine: engine.refresh(engine.now_ms + 10_000))
            task = client.engine.spawn(ask(ANY_BROKER, ListGroupsRequest(), ListGroupsResponse))
            client.turn(0)
            is_sent.set()
            assert is_answered.wait(10)

            now_ms = client.now_ms() + 2 * REQUEST_TIMEOUT_MS
            monkeypatch.setattr("ottla.client.blocking.client._monotonic_ms", lambda: now_ms)
            client.run_until(lambda: task.is_done)

            assert [group.group_id for group in task.result().groups] == ["g"]
        thread.join(10)
