"""What becomes of requests: answered in order, lost as what they were, or refused before they leave."""

import struct

import pytest

from ottla.model.errors import InvariantBroken
from ottla.zookeeper.ops import (
    ANY_VERSION,
    Create,
    Created,
    Data,
    DataSet,
    Exists,
    Failed,
    GetChildren,
    GetData,
    Lost,
    Multi,
    MultiRead,
    SessionExpired,
    SessionSuspended,
    SetData,
    Sync,
    WatchEvent,
    WatchKind,
    ZkCode,
)
from ottla.zookeeper.protocol import OpCode
from ottla.zookeeper.session import CloseConnection, Completed, State
from support.zookeeper.bytes import (
    Wire,
    a_stat,
    buffer_bytes,
    codes,
    connect_reply,
    data_body,
    notification,
    reply,
    stat_bytes,
    text_bytes,
)


def test_requests_are_pipelined_and_answered_in_order() -> None:
    wire = Wire().connect()
    for number in range(3):
        wire.session.submit(GetData(f"/{number}"), number)
    assert [request.xid for request in wire.sent()] == [1, 2, 3]

    wire.server_sends(b"".join(reply(xid, data_body(b"%d" % xid)) for xid in (1, 2, 3)))

    assert wire.results() == {number: Data(b"%d" % (number + 1), a_stat()) for number in range(3)}


def test_a_write_on_the_wire_may_have_been_applied_when_the_connection_breaks() -> None:
    """ZP1: neither done nor refused; whoever wrote must read back."""
    wire = Wire().connect()
    wire.session.submit(SetData("/a", b"", 1), "write")
    wire.sent()

    wire.cut()

    assert wire.results() == {"write": Lost(maybe_applied=True)}
    assert codes(wire.reconnect()) == []


def test_a_write_that_never_left_was_surely_not_applied() -> None:
    wire = Wire().connect()
    wire.session.submit(SetData("/a", b"", 1), "write")

    wire.cut()

    assert wire.results() == {"write": Lost(maybe_applied=False)}


def test_a_write_refused_by_the_server_is_told_apart_from_a_lost_one() -> None:
    wire = Wire().connect()
    wire.session.submit(SetData("/a", b"", 1), "write")
    wire.sent()

    wire.server_sends(reply(1, code=ZkCode.BAD_VERSION))

    assert wire.results() == {"write": Failed(ZkCode.BAD_VERSION)}


def test_a_read_on_the_wire_is_asked_again_on_the_next_connection() -> None:
    wire = Wire().connect()
    wire.session.submit(Sync("/"), "sync")
    wire.session.submit(SetData("/w", b"", 1), "write")
    wire.session.submit(GetData("/a"), "read")
    wire.sent()
    wire.cut()
    wire.session.submit(Exists("/later"), "later")

    requests = wire.reconnect()

    assert codes(requests) == [OpCode.SYNC, OpCode.GET_DATA, OpCode.EXISTS]
    assert requests[1].body == text_bytes("/a") + b"\0"
    assert set(wire.results()) == {"write"}


def test_a_write_submitted_while_disconnected_waits_for_the_next_connection() -> None:
    wire = Wire().connect()
    wire.cut()
    wire.session.submit(SetData("/a", b"", ANY_VERSION), "write")
    wire.run_until_attempt()
    wire.cut("refused")
    assert wire.results() == {}

    requests = wire.reconnect()
    wire.server_sends(reply(requests[0].xid, stat_bytes(a_stat(version=5))))

    assert wire.results() == {"write": DataSet(a_stat(version=5))}


def test_the_suspension_is_told_before_the_losses_that_it_brings() -> None:
    wire = Wire().connect()
    wire.session.submit(SetData("/a", b"", 1), "write")
    wire.sent()
    wire.take()

    wire.cut()

    kinds = [type(event) for event in wire.take()]
    assert kinds.index(SessionSuspended) < kinds.index(Completed)


def test_the_expiry_is_told_before_the_losses_that_it_brings() -> None:
    wire = Wire().connect()
    wire.cut()
    wire.session.submit(Create("/a"), "create")
    wire.run_until_attempt()
    wire.accept()
    wire.take()

    wire.server_sends(connect_reply(0, 0))

    kinds = [type(event) for event in wire.take()]
    assert kinds.index(SessionExpired) < kinds.index(Completed)


def test_a_watch_event_comes_before_the_data_that_it_announces() -> None:
    wire = Wire().connect()
    wire.session.submit(GetData("/a"), "read")
    wire.sent()
    wire.take()

    wire.server_sends(notification(WatchKind.DATA_CHANGED, "/a") + reply(1, data_body(b"new")))

    assert [type(event) for event in wire.take()] == [WatchEvent, Completed]


def test_a_chroot_is_put_before_paths_and_taken_off_answers() -> None:
    wire = Wire("zk:2181/kafka/east").connect()
    wire.session.submit(Create("/a-", sequential=True), "create")
    wire.session.submit(GetChildren("/"), "root")
    create, children = wire.sent()
    wire.server_sends(reply(1, text_bytes("/kafka/east/a-0000000007") + stat_bytes()))
    wire.server_sends(notification(WatchKind.CREATED, "/kafka/east/b"))
    wire.server_sends(notification(WatchKind.CHILDREN_CHANGED, "/kafka/east"))
    wire.server_sends(notification(WatchKind.CREATED, "/kafka/eastern"))

    assert create.body.startswith(text_bytes("/kafka/east/a-"))
    assert children.body == text_bytes("/kafka/east") + b"\0"
    assert wire.results()["create"] == Created("/a-0000000007", a_stat())
    assert wire.told()[1:] == [
        WatchEvent(WatchKind.CREATED, "/b"),
        WatchEvent(WatchKind.CHILDREN_CHANGED, "/"),
    ]


def test_an_absolute_path_ignores_the_chroot() -> None:
    wire = Wire("zk:2181/kafka").connect()
    wire.session.submit(Create("/kafka"), "chroot", is_absolute=True)
    assert wire.sent()[0].body.startswith(text_bytes("/kafka") + buffer_bytes(None))

    wire.server_sends(reply(1, text_bytes("/kafka") + stat_bytes()))

    assert wire.results() == {"chroot": Created("/kafka", a_stat())}


def test_a_version_of_minus_one_is_refused_unless_any_version_is_meant() -> None:
    """ZP8: elsewhere -1 means "not known"; written by mistake it would overwrite anything."""
    wire = Wire().connect()

    with pytest.raises(InvariantBroken, match="ANY_VERSION"):
        wire.session.submit(SetData("/a", b"", -1), "unknown")
    with pytest.raises(InvariantBroken, match="ANY_VERSION"):
        wire.session.submit(Multi((SetData("/a", b"", -1),)), "unknown")
    wire.session.submit(SetData("/a", b"", ANY_VERSION), "any")

    assert wire.sent()[0].body.endswith(b"\xff\xff\xff\xff")


def test_a_watch_in_a_multi_read_is_refused_because_the_server_would_forget_it() -> None:
    wire = Wire().connect()

    with pytest.raises(InvariantBroken, match="watches"):
        wire.session.submit(MultiRead((GetData("/a", watch=True),)), "read")


@pytest.mark.parametrize("path", ["", "a", "a/b", "/\ud800"])
def test_what_is_no_path_is_refused_before_it_leaves(path: str) -> None:
    wire = Wire("zk/chroot").connect()

    wire.session.submit(GetData(path), "read")

    assert wire.results() == {"read": Failed(ZkCode.BAD_ARGUMENTS)}
    assert wire.sent() == []


def test_a_request_that_the_server_would_hang_up_on_is_refused_before_it_leaves() -> None:
    wire = Wire().connect()
    room = 1_048_575 - 8 - len(text_bytes("/a")) - 4 - 4

    wire.session.submit(SetData("/a", b"x" * room, 1), "fits")
    wire.session.submit(SetData("/a", b"x" * (room + 1), 1), "too long")

    assert codes(wire.sent()) == [OpCode.SET_DATA]
    assert wire.results() == {"too long": Failed(ZkCode.MARSHALLING_ERROR)}


def test_an_answer_over_the_limit_fails_its_read_alone_and_is_skipped() -> None:
    """ZP9: neither memory is taken for it, nor is the connection lost again and again."""
    wire = Wire(reply_bytes_max=1_000).connect()
    wire.session.submit(GetChildren("/many"), "large")
    wire.session.submit(GetData("/a"), "small")
    wire.sent()
    large = reply(1, b"\0" * 50_000)

    for start in range(0, len(large), 700):
        wire.server_sends(large[start : start + 700])
        assert len(wire.session._reader._buffer) <= 1_000
    wire.server_sends(reply(2, data_body(b"ok")))

    assert wire.results() == {"large": Failed(ZkCode.MARSHALLING_ERROR), "small": Data(b"ok", a_stat())}
    assert wire.session.state is State.CONNECTED


def test_a_write_whose_answer_cannot_be_read_may_have_been_applied() -> None:
    wire = Wire(reply_bytes_max=1_000).connect()
    wire.session.submit(Multi(()), "too long")
    wire.session.submit(SetData("/a", b"", 1), "cut off")
    wire.sent()

    wire.server_sends(reply(1, b"\0" * 2_000) + reply(2, b"\0"))

    assert wire.results() == {"too long": Lost(True), "cut off": Lost(True)}


def test_a_read_whose_answer_cannot_be_read_fails_and_is_not_asked_for_ever() -> None:
    wire = Wire().connect()
    wire.session.submit(GetData("/a"), "read")
    wire.sent()

    wire.server_sends(reply(1, b"\0"))

    assert wire.results() == {"read": Failed(ZkCode.MARSHALLING_ERROR)}
    assert wire.reconnect() == []


def test_an_answer_of_up_to_four_mebibytes_is_taken() -> None:
    """ZP9: other clients stop at one mebibyte, Kafka's at four."""
    wire = Wire().connect()
    wire.session.submit(GetChildren("/topics"), "children")
    wire.sent()
    name = "t" * 246
    names = struct.pack(">i", 16_000) + text_bytes(name) * 16_000

    wire.server_sends(reply(1, names + stat_bytes()))

    result = wire.results()["children"]
    assert len(names) > 3.8 * 1024 * 1024
    assert getattr(result, "names", ()) == (name,) * 16_000


def test_a_negative_frame_length_ends_the_connection() -> None:
    wire = Wire().connect()
    wire.take()

    wire.server_sends(b"\xff\xff\xff\xf0")

    assert isinstance(wire.take()[0], CloseConnection)
