"""A session's life: made, kept alive, moved between servers, ended."""

import pytest

from ottla.zookeeper.connect_string import Host
from ottla.zookeeper.ops import (
    AuthFailed,
    Create,
    Data,
    Failed,
    GetData,
    Lost,
    SessionClosed,
    SessionConnected,
    SessionExpired,
    SessionSuspended,
    SetData,
    ZkCode,
)
from ottla.zookeeper.protocol import OpCode
from ottla.zookeeper.session import CloseConnection, OpenConnection, State
from support.zookeeper.bytes import SESSION_ID, TIMEOUT_MS, Wire, codes, connect_reply, data_body, reply


def test_a_new_session_is_asked_for_with_no_id_and_told_when_granted() -> None:
    wire = Wire().connect()

    assert wire.connects == [(0, 0)]
    assert wire.told() == [SessionConnected(SESSION_ID, True, TIMEOUT_MS)]


def test_a_resumed_session_names_its_id_and_the_last_transaction_it_saw() -> None:
    wire = Wire().connect()
    wire.session.submit(GetData("/a"), "read")
    wire.sent()
    wire.server_sends(reply(1, data_body(b""), zxid=42))
    wire.cut()

    wire.reconnect()

    assert wire.connects[-1] == (42, SESSION_ID)
    assert wire.told()[-1] == SessionConnected(SESSION_ID, False, TIMEOUT_MS)


def test_an_idle_session_pings_after_a_third_of_its_timeout() -> None:
    wire = Wire().connect()

    assert wire.session.next_tick_ms() == wire.now_ms + TIMEOUT_MS // 3
    wire.pass_ms(TIMEOUT_MS // 3 - 1)
    assert wire.sent() == []
    wire.pass_ms(1)
    assert codes(wire.sent()) == [OpCode.PING]


def test_requests_count_as_signs_of_life_so_that_no_ping_is_needed() -> None:
    wire = Wire().connect()
    wire.pass_ms(TIMEOUT_MS // 3 - 1)
    wire.session.submit(GetData("/a"), "read")
    wire.sent()

    wire.pass_ms(TIMEOUT_MS // 3 - 1)

    assert wire.sent() == []


def test_a_server_that_is_silent_for_two_thirds_of_the_timeout_is_left() -> None:
    wire = Wire("one,two").connect()
    first = next(event for event in wire.take() if isinstance(event, OpenConnection)).host

    wire.pass_ms(TIMEOUT_MS // 3)
    wire.sent()
    wire.pass_ms(TIMEOUT_MS // 3)

    events = wire.take()
    assert isinstance(events[0], CloseConnection)
    assert isinstance(events[1], SessionSuspended)
    assert [e.host for e in events if isinstance(e, OpenConnection)] == [
        host for host in (Host("one", 2181), Host("two", 2181)) if host != first
    ]


def test_the_reply_to_a_ping_keeps_the_server() -> None:
    wire = Wire().connect()
    for _ in range(10):
        wire.pass_ms(TIMEOUT_MS // 3)
        assert codes(wire.sent()) == [OpCode.PING]
        wire.server_sends(reply(-2))

    assert wire.session.state is State.CONNECTED


def test_a_server_that_accepts_and_never_answers_is_given_up_for_the_next() -> None:
    wire = Wire("one,two").start()
    first = wire.run_until_attempt().host
    wire.accept()

    wire.pass_ms(TIMEOUT_MS // 2)

    assert wire.run_until_attempt().host != first


def test_all_servers_are_tried_before_any_is_tried_again_and_then_with_growing_pauses() -> None:
    wire = Wire("a,b,c").start()
    tried, pauses = [], []
    for _ in range(18):
        before = wire.now_ms
        tried.append(wire.run_until_attempt().host)
        pauses.append(wire.now_ms - before)
        wire.cut("refused")

    for start in range(0, 18, 3):
        assert len(set(tried[start : start + 3])) == 3
    assert [pause for number, pause in enumerate(pauses) if number % 3] == [0] * 12
    waits = pauses[3::3]
    assert 0 < waits[0] <= 20
    assert waits[-1] > waits[0]
    assert max(waits) <= 1_000


def test_the_order_of_servers_comes_from_the_given_randomness() -> None:
    def first_host(seed: int) -> Host:
        return Wire("a,b,c,d,e", seed=seed).start().run_until_attempt().host

    assert first_host(1) == first_host(1)
    assert len({first_host(seed) for seed in range(30)}) == 5


def test_a_read_only_server_is_left_for_another() -> None:
    wire = Wire("one,two").start()
    first = wire.run_until_attempt().host
    wire.accept()

    wire.server_sends(connect_reply(is_read_only=True))

    assert wire.run_until_attempt().host != first
    assert wire.told() == []


def test_expiry_is_told_once_everything_asked_is_lost_and_a_new_session_is_begun() -> None:
    wire = Wire().connect()
    wire.session.submit(SetData("/a", b"", 0), "write")
    wire.session.submit(GetData("/a"), "read")
    wire.sent()
    wire.cut()
    wire.session.submit(Create("/b"), "later")
    wire.run_until_attempt()
    wire.accept()
    wire.told()

    wire.server_sends(connect_reply(0, 0))

    assert wire.told() == [SessionExpired(SESSION_ID, "the servers do not know the session any more")]
    assert wire.results() == {"write": Lost(True), "read": Lost(False), "later": Lost(False)}
    wire.accept()
    assert wire.connects[-1] == (0, 0)
    wire.server_sends(connect_reply(77))
    assert wire.told() == [SessionConnected(77, True, TIMEOUT_MS)]


def test_what_is_submitted_at_the_news_of_expiry_goes_to_the_new_session() -> None:
    wire = Wire().connect()
    wire.cut()
    wire.run_until_attempt()
    wire.accept()
    wire.server_sends(connect_reply(0, 0))
    wire.take()

    wire.session.submit(Create("/me", ephemeral=True), "register")
    wire.accept()
    wire.server_sends(connect_reply(78))

    assert codes(wire.sent()) == [OpCode.CREATE_2]


def test_without_renewal_the_machine_rests_after_expiry_until_started() -> None:
    wire = Wire(renew_after_expiry=False).connect()
    wire.cut()
    wire.run_until_attempt()
    wire.accept()
    wire.server_sends(connect_reply(0, 0))
    wire.take()

    assert wire.session.next_tick_ms() is None
    wire.start()

    assert isinstance(wire.run_until_attempt(), OpenConnection)


def test_close_sends_the_end_of_session_after_what_was_asked_before() -> None:
    wire = Wire().connect()
    wire.session.submit(Create("/a"), "create")
    wire.session.close(wire.now_ms)

    requests = wire.sent()
    assert codes(requests) == [OpCode.CREATE_2, OpCode.CLOSE]
    wire.server_sends(reply(1, code=ZkCode.NODE_EXISTS) + reply(2))

    assert wire.results() == {"create": Failed(ZkCode.NODE_EXISTS)}
    assert wire.log[-1] == SessionClosed()
    assert wire.session.next_tick_ms() is None


def test_close_while_disconnected_reaches_for_a_server_to_end_the_session() -> None:
    wire = Wire().connect()
    wire.cut()

    wire.session.close(wire.now_ms)

    assert codes(wire.reconnect()) == [OpCode.CLOSE]


def test_close_gives_up_on_silent_servers_after_its_limit() -> None:
    wire = Wire().connect()
    wire.session.close(wire.now_ms, limit_ms=500)
    wire.sent()

    wire.pass_ms(499)
    assert wire.told() == [SessionConnected(SESSION_ID, True, TIMEOUT_MS)]
    wire.pass_ms(1)

    assert wire.told() == [SessionClosed()]
    wire.pass_ms(10_000)
    assert wire.take() == []


def test_what_is_submitted_after_close_is_surely_not_done() -> None:
    wire = Wire().connect()
    wire.session.close(wire.now_ms)

    wire.session.submit(Create("/a"), "late")

    assert wire.results() == {"late": Lost(False)}


def test_logins_are_sent_on_every_connection_before_anything_else() -> None:
    wire = Wire(auth=(("digest", b"u:p"),)).connect()
    wire.session.add_auth("digest", b"v:q")
    assert codes(wire.sent()) == [OpCode.AUTH, OpCode.AUTH]
    wire.cut()
    wire.session.submit(GetData("/a", watch=True), "read")

    requests = wire.reconnect()

    assert codes(requests) == [OpCode.AUTH, OpCode.AUTH, OpCode.GET_DATA]
    assert requests[0].body.endswith(b"u:p")
    assert requests[1].body.endswith(b"v:q")


def test_a_refused_login_ends_the_session_and_says_so() -> None:
    wire = Wire(auth=(("sasl", b""),)).connect()
    wire.session.submit(Create("/a"), "create")
    wire.sent()
    wire.told()

    wire.server_sends(reply(-4, code=ZkCode.AUTH_FAILED))

    assert wire.told() == [
        AuthFailed("the servers refuse the login (AUTH_FAILED); check the user and the password")
    ]
    assert wire.results() == {"create": Lost(True)}
    wire.start()
    assert isinstance(wire.run_until_attempt(), OpenConnection)


def test_a_server_that_demands_a_login_is_a_refused_login() -> None:
    wire = Wire().connect()
    wire.session.submit(GetData("/a"), "read")
    wire.sent()
    wire.told()

    wire.server_sends(reply(1, code=ZkCode.SESSION_CLOSED_REQUIRE_SASL_AUTH))

    (refused,) = wire.told()
    assert isinstance(refused, AuthFailed)
    assert "demand a login" in refused.reason


@pytest.mark.parametrize("piece", [1, 3, 7, 1000])
def test_frames_may_come_in_pieces_of_any_size(piece: int) -> None:
    wire = Wire().start()
    wire.accept()
    stream = connect_reply() + reply(-2) + reply(1, data_body(b"x" * 50))
    wire.session.submit(GetData("/a"), "read")
    first, rest = stream[:41], stream[41:]
    for start in range(0, len(first), piece):
        wire.server_sends(first[start : start + piece])
    wire.sent()

    for start in range(0, len(rest), piece):
        wire.server_sends(rest[start : start + piece])

    assert isinstance(wire.results()["read"], Data)


def test_a_reply_out_of_order_ends_the_connection_not_the_session() -> None:
    wire = Wire().connect()
    wire.session.submit(GetData("/a"), "first")
    wire.session.submit(GetData("/b"), "second")
    wire.sent()
    wire.take()

    wire.server_sends(reply(2, data_body(b"b")))

    assert isinstance(wire.take()[0], CloseConnection)
    assert codes(wire.reconnect()) == [OpCode.GET_DATA, OpCode.GET_DATA]


def test_a_peer_that_speaks_no_zookeeper_is_left_with_that_reason() -> None:
    wire = Wire().start()
    wire.accept()

    wire.server_sends(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    assert "does not speak ZooKeeper's protocol" in next(iter(wire.session.ring.failures.values()))


def test_request_numbers_wrap_before_they_turn_negative() -> None:
    wire = Wire().connect()
    wire.session._queue._last_xid = 2**31 - 2
    for _ in range(2):
        wire.session.submit(GetData("/a"), "read")

    assert [request.xid for request in wire.sent()] == [2**31 - 1, 1]


def test_a_connection_that_takes_no_more_does_not_call_for_one_ping_after_the_other() -> None:
    wire = Wire().connect()
    wire.sent()

    wire.pass_ms(TIMEOUT_MS // 3)

    due_ms = wire.session.next_tick_ms()
    assert due_ms is not None
    assert due_ms > wire.now_ms
    assert codes(wire.sent()) == [OpCode.PING]


def test_a_granted_timeout_replaces_the_asked_one() -> None:
    wire = Wire(session_timeout_ms=60_000).connect(timeout_ms=40_000)

    assert wire.session.timeout_ms == 40_000
    assert wire.session.next_tick_ms() == wire.now_ms + 40_000 // 3
