"""The client's side of a connection: order, deadlines, versions, loss, and peers that break the rules."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from ottla.model.errors import ErrorCode, MalformedRequest
from ottla.wire.apis.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.apis.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ottla.wire.apis.metadata import MetadataRequest, MetadataResponse
from ottla.wire.apis.produce import ProduceRequest
from ottla.wire.codec import UnsupportedVersion, decode
from ottla.wire.connection import (
    CORRELATION_ID_MAX,
    SOFTWARE_VERSION,
    ClientSide,
    UnexpectedResponse,
    VersionsRefused,
)
from ottla.wire.fields import Response
from ottla.wire.headers import RequestHeader, decode_request_header, frame_response
from ottla.wire.keys import ApiKey
from ottla.wire.primitives import Buffer

DEADLINE = 1_000
QUESTION = MetadataRequest(topics=None)


def header(parts: list[Buffer]) -> RequestHeader:
    return decode_request_header(b"".join(parts)[4:])[0]


def a_frame(message: Response, version: int, correlation_id: int) -> memoryview:
    return memoryview(b"".join(frame_response(message, version, correlation_id))[4:])


def spoken(**versions: tuple[int, int]) -> ApiVersionsResponse:
    return ApiVersionsResponse(
        api_keys=[ApiVersion(ApiKey[name], first, last) for name, (first, last) in versions.items()]
    )


def greeted(**versions: tuple[int, int]) -> ClientSide[Any]:
    side: ClientSide[Any] = ClientSide("tester")
    assert side.greeted(spoken(**versions))
    return side


def test_requests_are_numbered_and_carry_the_client_id() -> None:
    side: ClientSide[str] = ClientSide("tester")

    sent = [header(side.send(QUESTION, 12, "a", DEADLINE)) for _ in range(2)]

    assert sent == [RequestHeader(3, 12, 0, "tester"), RequestHeader(3, 12, 1, "tester")]


def test_responses_go_to_the_waiters_in_the_order_of_the_requests() -> None:
    side: ClientSide[str] = ClientSide(None)
    side.send(QUESTION, 12, "first", DEADLINE)
    side.send(FindCoordinatorRequest(key="group"), 2, "second", DEADLINE)

    first, brokers = side.receive(a_frame(MetadataResponse(controller_id=7), 12, 0))
    second, coordinator = side.receive(a_frame(FindCoordinatorResponse(node_id=3), 2, 1))

    assert (first, brokers.controller_id) == ("first", 7)
    assert (second, coordinator.node_id) == ("second", 3)
    assert len(side) == 0


def test_numbers_begin_again_behind_the_largest() -> None:
    side: ClientSide[str] = ClientSide(None)
    side._next_correlation_id = CORRELATION_ID_MAX

    sent = [header(side.send(QUESTION, 12, "a", DEADLINE)).correlation_id for _ in range(2)]

    assert sent == [CORRELATION_ID_MAX, 0]


def test_a_request_without_a_response_is_numbered_and_not_waited_for() -> None:
    side: ClientSide[str] = ClientSide(None)

    sent = header(side.send_unanswered(ProduceRequest(acks=0), 9))
    side.send(QUESTION, 12, "next", DEADLINE)

    assert sent.correlation_id == 0
    assert side.receive(a_frame(MetadataResponse(), 12, 1))[0] == "next"


def test_a_request_that_cannot_be_written_is_not_waited_for() -> None:
    side: ClientSide[str] = ClientSide(None)

    with pytest.raises(UnsupportedVersion):
        side.send(QUESTION, 99, "never", DEADLINE)

    assert side.oldest is None
    assert header(side.send(QUESTION, 12, "next", DEADLINE)).correlation_id == 0


def test_the_oldest_request_holds_the_deadline() -> None:
    side: ClientSide[str] = ClientSide(None)
    side.send(QUESTION, 12, "patient", 500)
    side.send(QUESTION, 12, "hasty", 100)

    seen = []
    for number in range(2):
        assert side.oldest is not None
        seen.append((side.oldest.waiter, side.oldest.deadline))
        side.receive(a_frame(MetadataResponse(), 12, number))

    assert seen == [("patient", 500), ("hasty", 100)]
    assert side.oldest is None


@pytest.mark.parametrize(
    ("asked", "frame"),
    [
        (False, a_frame(MetadataResponse(), 12, 0)),
        (True, a_frame(MetadataResponse(), 12, 1)),
    ],
    ids=["unasked", "out of order"],
)
def test_a_response_that_is_not_due_is_refused_and_changes_nothing(asked: bool, frame: memoryview) -> None:
    side: ClientSide[str] = ClientSide(None)
    if asked:
        side.send(QUESTION, 12, "waits", DEADLINE)

    with pytest.raises(UnexpectedResponse):
        side.receive(frame)

    assert len(side) == asked


@pytest.mark.parametrize("frame", [b"\0\0", b"\0\0\0\0", a_frame(MetadataResponse(), 12, 0)[:-1]])
def test_rubbish_is_malformed_and_the_waiter_is_still_lost_with_the_connection(frame: bytes) -> None:
    side: ClientSide[str] = ClientSide(None)
    side.send(QUESTION, 12, "waits", DEADLINE)

    with pytest.raises(MalformedRequest):
        side.receive(memoryview(frame))

    assert side.lose() == ["waits"]


def test_a_loss_hands_out_everyone_who_waited_once_and_numbers_go_on() -> None:
    side = greeted(METADATA=(0, 12))
    side.send(QUESTION, 12, "first", DEADLINE)
    side.send(QUESTION, 12, "second", DEADLINE)

    assert side.lose() == ["first", "second"]
    assert side.lose() == []
    assert side.versions is None
    assert header(side.send(QUESTION, 12, "third", DEADLINE)).correlation_id == 2


def test_the_greeting_says_who_we_are() -> None:
    side: ClientSide[None] = ClientSide(None)

    frame = b"".join(side.greet(None, DEADLINE))[4:]

    sent, body = decode_request_header(frame)
    hello = decode(ApiVersionsRequest, sent.api_version, frame, body)
    assert (sent.api_key, sent.api_version) == (ApiKey.API_VERSIONS, 3)
    assert (hello.client_software_name, hello.client_software_version) == ("ottla", SOFTWARE_VERSION)


def test_our_version_is_that_of_the_distribution() -> None:
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())

    assert project["project"]["version"] == SOFTWARE_VERSION


@pytest.mark.parametrize(
    ("last_known", "asked_next"), [({"API_VERSIONS": (0, 1)}, 1), ({}, 0), ({"API_VERSIONS": (0, 9)}, 2)]
)
def test_a_broker_that_does_not_know_the_greeting_is_greeted_in_a_lower_version(
    last_known: dict[str, tuple[int, int]], asked_next: int
) -> None:
    side: ClientSide[str] = ClientSide(None)
    side.greet("link", DEADLINE)
    refusal = spoken(**last_known)
    refusal.error_code = ErrorCode.UNSUPPORTED_VERSION

    waiter, response = side.receive(a_frame(refusal, 0, 0))
    is_known = side.greeted(response)

    assert (waiter, is_known, side.versions) == ("link", False, None)
    assert header(side.greet("link", DEADLINE)).api_version == asked_next


def test_a_broker_that_refuses_every_greeting_is_given_up() -> None:
    side: ClientSide[str] = ClientSide(None)
    refusal = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    assert not side.greeted(refusal)

    with pytest.raises(VersionsRefused, match="35"):
        side.greeted(refusal)


def test_after_a_loss_the_next_broker_is_greeted_in_our_highest_version_again() -> None:
    side: ClientSide[str] = ClientSide(None)
    side.greeted(ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION))

    side.lose()

    assert header(side.greet("link", DEADLINE)).api_version == 3


@pytest.mark.parametrize(
    ("served", "version_max", "expected"),
    [
        ((0, 9), None, 9),
        ((0, 99), None, 12),
        ((0, 99), 8, 8),
        ((0, 5), 8, 5),
        ((9, 12), 8, None),
        ((13, 99), None, None),
        (None, None, None),
    ],
)
def test_the_version_is_the_highest_that_both_sides_speak(
    served: tuple[int, int] | None, version_max: int | None, expected: int | None
) -> None:
    side = greeted(**({} if served is None else {"METADATA": served}))

    assert side.version_for(QUESTION, version_max) == expected
