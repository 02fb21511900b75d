"""ZP10: ZooKeeper wiped or restored. Its transactions go back, and it refuses us without a word."""

import pytest

from ottla.zookeeper.ops import GetData, SessionConnected, SessionExpired
from ottla.zookeeper.session import State
from support.zookeeper.bytes import SESSION_ID, TIMEOUT_MS, Wire, connect_reply, data_body, reply


def a_wire_that_saw_transaction_900(connect_string: str = "zk") -> Wire:
    wire = Wire(connect_string).connect()
    wire.session.submit(GetData("/a"), "read")
    wire.sent()
    wire.server_sends(reply(1, data_body(b""), zxid=900))
    wire.cut()
    return wire


def refuse_until_probed(wire: Wire) -> None:
    """Every server closes the connection after our connect request, until one claims to have seen nothing."""
    for _ in range(200):
        wire.run_until_attempt()
        wire.accept()
        if wire.connects[-1] == (0, SESSION_ID):
            return
        wire.cut("closed")
    raise AssertionError("the machine never doubted")


def test_servers_that_refuse_us_are_asked_as_if_we_had_seen_nothing_but_only_after_the_timeout() -> None:
    wire = a_wire_that_saw_transaction_900()
    began_ms = wire.now_ms

    refuse_until_probed(wire)

    assert wire.now_ms - began_ms > TIMEOUT_MS
    assert (900, SESSION_ID) in wire.connects


def test_a_wiped_ensemble_does_not_know_the_session_and_a_new_one_is_begun_from_nothing() -> None:
    wire = a_wire_that_saw_transaction_900()
    refuse_until_probed(wire)
    wire.told()

    wire.server_sends(connect_reply(0, 0))
    wire.accept()
    wire.server_sends(connect_reply(3))

    assert [type(event) for event in wire.told()] == [SessionExpired, SessionConnected]
    assert wire.connects[-1] == (0, 0)
    assert wire.session.last_zxid == 0


def test_a_session_is_never_resumed_on_a_server_that_is_behind_it() -> None:
    wire = a_wire_that_saw_transaction_900("one,two")
    refuse_until_probed(wire)
    wire.told()

    wire.server_sends(connect_reply())

    assert wire.session.state is State.CONNECTING
    assert wire.told() == []


def test_a_restored_ensemble_that_knows_the_session_but_not_its_history_ends_it() -> None:
    wire = a_wire_that_saw_transaction_900("one,two")
    began_ms = wire.now_ms
    wire.told()
    expired: list[SessionExpired] = []
    while not expired:
        wire.run_until_attempt()
        wire.accept()
        if wire.connects[-1] == (900, SESSION_ID):
            wire.cut("closed")
        else:
            wire.server_sends(connect_reply())
        expired = [event for event in wire.told() if isinstance(event, SessionExpired)]

    assert wire.now_ms - began_ms < 5 * TIMEOUT_MS
    assert [event.session_id for event in expired] == [SESSION_ID]
    assert "behind" in expired[0].reason


@pytest.mark.parametrize("ensemble", ["one", "one,two,three"])
def test_servers_that_only_had_no_quorum_for_long_give_the_session_back(ensemble: str) -> None:
    """They hang up on everybody meanwhile; who leads them afterwards gives every session its time anew."""
    wire = a_wire_that_saw_transaction_900(ensemble)
    wire.told()
    refuse_until_probed(wire)

    for _ in range(len(ensemble.split(","))):  # as many know us again as were asked whether they do
        wire.server_sends(connect_reply())
        wire.run_until_attempt()
        wire.accept()
    wire.server_sends(connect_reply())

    assert wire.connects[-1] == (900, SESSION_ID)
    assert wire.told() == [SessionConnected(SESSION_ID, False, TIMEOUT_MS)]


def test_a_server_that_resumes_the_session_in_the_ordinary_way_ends_the_doubt() -> None:
    wire = a_wire_that_saw_transaction_900()
    refuse_until_probed(wire)
    wire.cut("closed")

    wire.run_until_attempt()
    wire.accept()
    assert wire.connects[-1] == (900, SESSION_ID)
    wire.server_sends(connect_reply())

    assert wire.told()[-1] == SessionConnected(SESSION_ID, False, TIMEOUT_MS)
