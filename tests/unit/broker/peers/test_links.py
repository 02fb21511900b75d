"""Lines to other brokers: order, loss, time-outs, pauses, negotiated versions."""

from typing import Any

import pytest

from ottla.broker.peers.links import LinkLost, PeerLink
from ottla.model.ids import BrokerId
from ottla.security.sasl.mechanisms import SaslLogin
from ottla.security.secret import Secret
from ottla.wire.apis.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.apis.metadata import MetadataRequest, MetadataResponse
from ottla.wire.apis.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from ottla.wire.apis.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from ottla.wire.headers import frame_response
from support.bench.node_bench import Bench

PEER = BrokerId(2)
REQUEST_TIMEOUT_MS = 30_000


class LinkBench(Bench):
    def __init__(self) -> None:
        super().__init__()
        self.results: list[Any] = []

    def link(self, *, negotiates: bool = False) -> PeerLink:
        link = self.node.links.get(PEER, "test", negotiates=negotiates)
        link.address = ("two", 9092)
        return link

    def open(self, link: PeerLink) -> None:
        self.advance(0)
        assert link.id in self.links, "the edge was asked to connect"
        self.node.on_peer_connected(link.id)
        self.settle()

    def answer(self, link: PeerLink, message: Any, version: int, correlation_id: int) -> None:
        frame = b"".join(frame_response(message, version, correlation_id))[4:]
        self.node.on_peer_frame(link.id, memoryview(bytearray(frame)))
        self.settle()


def test_the_first_request_opens_the_line_and_is_sent_when_it_stands() -> None:
    bench = LinkBench()
    link = bench.link()

    link.request(MetadataRequest(topics=None), 12, bench.results.append)
    bench.advance(0)
    assert bench.sent == []
    bench.open(link)

    assert len(bench.peer_requests(MetadataRequest)) == 1
    bench.answer(link, MetadataResponse(controller_id=7), 12, 0)
    assert [response.controller_id for response in bench.results] == [7]


def test_answers_belong_to_the_requests_in_order() -> None:
    bench = LinkBench()
    link = bench.link()
    for _ in range(3):
        link.request(MetadataRequest(topics=None), 12, bench.results.append)
    bench.open(link)

    for number in range(3):
        bench.answer(link, MetadataResponse(controller_id=number), 12, number)

    assert [response.controller_id for response in bench.results] == [0, 1, 2]
    assert link.in_flight == 0


def test_a_lost_line_fails_what_was_sent_and_what_was_not() -> None:
    bench = LinkBench()
    link = bench.link()
    link.request(MetadataRequest(topics=None), 12, bench.results.append)
    bench.open(link)
    link.request(MetadataRequest(topics=None), 12, bench.results.append)

    bench.node.on_peer_lost(link.id, "reset")

    assert bench.results == [LinkLost("reset"), LinkLost("reset")]
    assert not link.is_connected


def test_the_pause_before_the_next_try_grows_and_ends_with_a_success() -> None:
    bench = LinkBench()
    link = bench.link()
    pauses = []
    for _ in range(7):
        link.request(MetadataRequest(topics=None), 12, bench.results.append)
        deadline = bench.node.next_deadline_ms()
        assert deadline is not None
        pauses.append(deadline - bench.clock.now_ms)
        bench.advance(pauses[-1])
        bench.node.on_peer_lost(link.id, "refused")

    assert pauses == [0, 50, 100, 200, 400, 800, 1000]
    link.request(MetadataRequest(topics=None), 12, bench.results.append)
    bench.advance(1000)
    bench.open(link)
    bench.node.on_peer_lost(link.id, "reset")
    link.request(MetadataRequest(topics=None), 12, bench.results.append)
    assert bench.node.next_deadline_ms() == bench.clock.now_ms + 50


def test_a_peer_that_does_not_answer_in_time_is_hung_up_on() -> None:
    bench = LinkBench()
    link = bench.link()
    link.request(MetadataRequest(topics=None), 12, bench.results.append)
    bench.open(link)

    bench.advance(REQUEST_TIMEOUT_MS - 1)
    assert bench.results == []
    bench.advance(1)

    assert isinstance(bench.results[0], LinkLost)
    assert link.id not in bench.links


def test_a_line_that_answers_in_time_leaves_no_timers_behind() -> None:
    bench = LinkBench()
    link = bench.link()
    link.request(MetadataRequest(topics=None), 12, bench.results.append)
    bench.open(link)
    bench.answer(link, MetadataResponse(), 12, 0)
    for number in range(1, 1000):
        link.request(MetadataRequest(topics=None), 12, bench.results.append)
        bench.answer(link, MetadataResponse(), 12, number)

    assert len(bench.node.timers._heap) <= 3
    bench.advance(10 * REQUEST_TIMEOUT_MS)
    assert len(bench.results) == 1000
    assert link.is_connected


def test_an_answer_that_nobody_asked_for_ends_the_line() -> None:
    bench = LinkBench()
    link = bench.link()
    link.request(MetadataRequest(topics=None), 12, bench.results.append)
    bench.open(link)

    bench.answer(link, MetadataResponse(), 12, 99)

    assert isinstance(bench.results[0], LinkLost)
    assert not link.is_connected


def test_rubbish_from_a_peer_ends_the_line() -> None:
    bench = LinkBench()
    link = bench.link()
    link.request(MetadataRequest(topics=None), 12, bench.results.append)
    bench.open(link)

    bench.node.on_peer_frame(link.id, memoryview(b"\0\0"))
    bench.settle()

    assert isinstance(bench.results[0], LinkLost)


def test_a_negotiating_line_asks_first_and_stays_within_what_the_peer_speaks() -> None:
    bench = LinkBench()
    link = bench.link(negotiates=True)
    link.request(MetadataRequest(topics=None), 12, bench.results.append)
    bench.open(link)
    assert len(bench.peer_requests(ApiVersionsRequest)) == 1
    assert bench.peer_requests(MetadataRequest) == []

    spoken = ApiVersionsResponse(api_keys=[ApiVersion(api_key=3, min_version=0, max_version=9)])
    bench.answer(link, spoken, 3, 0)

    assert [version for _, _, version, _ in bench.peer_requests(MetadataRequest)] == [9]


def test_a_peer_that_does_not_know_the_greeting_is_greeted_in_a_lower_version() -> None:
    bench = LinkBench()
    link = bench.link(negotiates=True)
    link.request(MetadataRequest(topics=None), 12, bench.results.append)
    bench.open(link)

    known = [ApiVersion(api_key=18, min_version=0, max_version=2)]
    bench.answer(link, ApiVersionsResponse(error_code=35, api_keys=known), 0, 0)
    assert [version for _, _, version, _ in bench.peer_requests(ApiVersionsRequest)] == [3, 2]
    bench.answer(link, ApiVersionsResponse(api_keys=[ApiVersion(3, 0, 7)]), 2, 1)

    assert [version for _, _, version, _ in bench.peer_requests(MetadataRequest)] == [7]


def test_a_peer_that_does_not_negotiate_is_hung_up_on() -> None:
    bench = LinkBench()
    link = bench.link(negotiates=True)
    link.request(MetadataRequest(topics=None), 12, bench.results.append)
    bench.open(link)

    bench.answer(link, ApiVersionsResponse(error_code=35), 3, 0)

    assert isinstance(bench.results[0], LinkLost)


def test_a_dropped_line_is_made_anew() -> None:
    bench = LinkBench()
    link = bench.link()
    link.request(MetadataRequest(topics=None), 12, bench.results.append)
    bench.open(link)

    bench.node.links.drop(link, "bounced")

    assert bench.results == [LinkLost("bounced")]
    assert bench.link() is not link


def test_a_broker_without_an_address_fails_the_request_but_not_inside_the_call() -> None:
    bench = LinkBench()
    link = bench.node.links.get(BrokerId(77), "test")

    link.request(MetadataRequest(topics=None), 12, bench.results.append)
    assert bench.results == []
    bench.advance(0)

    assert isinstance(bench.results[0], LinkLost)


def test_a_mistake_in_one_callback_of_a_lost_line_does_not_take_the_others_along() -> None:
    bench = LinkBench()
    link = bench.link()

    def fail(_: Any) -> None:
        raise ValueError("this callback is wrong")

    link.request(MetadataRequest(topics=None), 12, fail)
    bench.open(link)
    for then in (bench.results.append, fail, bench.results.append):
        link.request(MetadataRequest(topics=None), 12, then)

    with pytest.raises(ValueError, match="this callback is wrong"):
        bench.node.on_peer_lost(link.id, "reset")

    assert bench.results == [LinkLost("reset"), LinkLost("reset")]


LOGIN = SaslLogin("PLAIN", "broker", Secret("hush"))


class LoginBench(LinkBench):
    """A line to a broker that asks who comes."""

    def __init__(self) -> None:
        super().__init__()
        self.line = self.link()
        self.line.login = LOGIN

    def connect_and_ask(self) -> None:
        self.line.request(MetadataRequest(topics=None), 12, self.results.append)
        self.open(self.line)

    def last_correlation_id(self, message: Any) -> int:
        return self.peer_requests(message)[-1][1]

    def let_in(self, lifetime_ms: int = 0) -> None:
        handshake = SaslHandshakeResponse(mechanisms=("PLAIN",))
        self.answer(self.line, handshake, 1, self.last_correlation_id(SaslHandshakeRequest))
        granted = SaslAuthenticateResponse(session_lifetime_ms=lifetime_ms)
        self.answer(self.line, granted, 1, self.last_correlation_id(SaslAuthenticateRequest))


def test_requests_wait_until_the_other_broker_has_let_us_in() -> None:
    bench = LoginBench()

    bench.connect_and_ask()
    assert bench.peer_requests(MetadataRequest) == []
    bench.let_in()

    ((_, _, _, token),) = bench.peer_requests(SaslAuthenticateRequest)
    assert bytes(token.auth_bytes) == b"\0broker\0hush"
    assert len(bench.peer_requests(MetadataRequest)) == 1


def test_a_refused_login_loses_the_requests_and_the_next_one_tries_again() -> None:
    bench = LoginBench()
    bench.connect_and_ask()
    bench.answer(bench.line, SaslHandshakeResponse(mechanisms=("PLAIN",)), 1, 0)

    refusal = SaslAuthenticateResponse(error_code=58, error_message="Authentication failed: no")
    bench.answer(bench.line, refusal, 1, 1)

    (lost,) = bench.results
    assert isinstance(lost, LinkLost)
    assert "user 'broker': Authentication failed: no" in lost.reason
    bench.line.request(MetadataRequest(topics=None), 12, bench.results.append)
    bench.advance(50)
    bench.node.on_peer_connected(bench.line.id)
    bench.settle()
    bench.let_in()
    assert len(bench.peer_requests(MetadataRequest)) == 1


def test_a_login_with_a_lifetime_is_renewed_before_it_ends_and_behind_what_was_sent() -> None:
    bench = LoginBench()
    bench.connect_and_ask()
    bench.let_in(lifetime_ms=10_000)
    bench.advance(8_999)
    bench.line.request(MetadataRequest(topics=None), 12, bench.results.append)
    bench.settle()
    assert len(bench.peer_requests(MetadataRequest)) == 2

    bench.advance(1)
    bench.line.request(MetadataRequest(topics=None), 12, bench.results.append)
    bench.settle()

    assert len(bench.peer_requests(SaslHandshakeRequest)) == 2
    assert len(bench.peer_requests(MetadataRequest)) == 2
    for _, number, version, _ in bench.peer_requests(MetadataRequest):
        bench.answer(bench.line, MetadataResponse(controller_id=7), version, number)
    bench.let_in(lifetime_ms=10_000)
    assert len(bench.peer_requests(MetadataRequest)) == 3
