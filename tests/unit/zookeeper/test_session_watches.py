"""No watch is lost while the session lives: which are armed, and how they are armed again."""

import struct

from ottla.zookeeper.jute import Cursor
from ottla.zookeeper.ops import (
    Exists,
    GetChildren,
    GetData,
    MultiRead,
    SessionExpired,
    SetData,
    Stat,
    WatchEvent,
    WatchKind,
    ZkCode,
)
from ottla.zookeeper.protocol import XID_SET_WATCHES, OpCode
from ottla.zookeeper.watches import SET_WATCHES_BYTES_MAX
from support.zookeeper.bytes import (
    SESSION_ID,
    Wire,
    codes,
    connect_reply,
    data_body,
    notification,
    reply,
    stat_bytes,
)

NO_CHILDREN = struct.pack(">i", 0) + stat_bytes()


def set_watches(body: bytes) -> tuple[int, tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    cursor = Cursor(body)
    return cursor.int64(), cursor.names(), cursor.names(), cursor.names()


def a_wire_watching_everything() -> Wire:
    wire = Wire().connect()
    wire.session.submit(GetData("/data", watch=True), "data")
    wire.session.submit(Exists("/there", watch=True), "there")
    wire.session.submit(Exists("/missing", watch=True), "missing")
    wire.session.submit(GetChildren("/parent", watch=True), "parent")
    wire.session.submit(GetData("/unwatched"), "unwatched")
    wire.session.submit(GetData("/not-there", watch=True), "not there")
    wire.sent()
    wire.server_sends(reply(1, data_body(b""), zxid=10))
    wire.server_sends(reply(2, stat_bytes(), zxid=11))
    wire.server_sends(reply(3, code=ZkCode.NO_NODE, zxid=12))
    wire.server_sends(reply(4, NO_CHILDREN, zxid=13))
    wire.server_sends(reply(5, data_body(b""), zxid=14))
    wire.server_sends(reply(6, code=ZkCode.NO_NODE, zxid=15))
    return wire


def test_every_armed_watch_is_armed_again_first_thing_on_the_next_connection() -> None:
    """ZP5: relative to the last transaction seen, so that the server tells what happened meanwhile."""
    wire = a_wire_watching_everything()
    wire.cut()
    wire.session.submit(GetData("/x"), "queued")

    requests = wire.reconnect()

    assert codes(requests) == [OpCode.SET_WATCHES, OpCode.GET_DATA]
    assert requests[0].xid == XID_SET_WATCHES
    assert set_watches(requests[0].body) == (15, ("/data", "/there"), ("/missing",), ("/parent",))


def test_a_watch_that_fired_is_gone_until_it_is_armed_again() -> None:
    """ZP4."""
    wire = a_wire_watching_everything()
    for kind, path in (
        (WatchKind.DATA_CHANGED, "/data"),
        (WatchKind.DELETED, "/there"),
        (WatchKind.CREATED, "/missing"),
        (WatchKind.CHILDREN_CHANGED, "/parent"),
    ):
        wire.server_sends(notification(kind, path))
    assert len(wire.session.watches) == 0
    wire.session.submit(GetData("/data", watch=True), "again")
    wire.sent()
    wire.server_sends(reply(7, data_body(b""), zxid=20))
    wire.cut()

    (request,) = wire.reconnect()

    assert set_watches(request.body) == (20, ("/data",), (), ())


def test_deletion_of_a_node_takes_all_watches_on_it() -> None:
    wire = Wire().connect()
    wire.session.submit(GetData("/a", watch=True), "data")
    wire.session.submit(GetChildren("/a", watch=True), "children")
    wire.sent()
    wire.server_sends(reply(1, data_body(b"")) + reply(2, NO_CHILDREN))

    wire.server_sends(notification(WatchKind.DELETED, "/a"))

    assert len(wire.session.watches) == 0


def test_a_change_of_data_leaves_the_watch_on_children() -> None:
    wire = Wire().connect()
    wire.session.submit(GetData("/a", watch=True), "data")
    wire.session.submit(GetChildren("/a", watch=True), "children")
    wire.sent()
    wire.server_sends(reply(1, data_body(b"")) + reply(2, NO_CHILDREN))

    wire.server_sends(notification(WatchKind.DATA_CHANGED, "/a"))

    assert wire.session.watches.children == {"/a"}
    assert wire.session.watches.data == set()


def test_a_watched_read_whose_answer_was_lost_is_asked_again_with_its_watch() -> None:
    wire = Wire().connect()
    wire.session.submit(GetData("/a", watch=True), "read")
    wire.sent()
    wire.cut()

    (request,) = wire.reconnect()
    assert (request.code, request.body[-1]) == (OpCode.GET_DATA, 1)
    wire.server_sends(reply(request.xid, data_body(b"")))

    assert wire.session.watches.data == {"/a"}


def test_the_second_watch_of_one_transaction_is_not_lost_when_the_connection_breaks_between() -> None:
    """The server tells the transaction with each event; taking it over would hide the second event."""
    wire = a_wire_watching_everything()

    wire.server_sends(notification(WatchKind.DATA_CHANGED, "/data", zxid=99))
    wire.cut()
    (request,) = wire.reconnect()

    assert set_watches(request.body) == (15, ("/there",), ("/missing",), ("/parent",))


def test_a_break_while_watches_are_armed_again_starts_from_the_same_transaction() -> None:
    """Only when all pieces are answered is everything told that happened before this connection."""
    wire = Wire().connect()
    count = SET_WATCHES_BYTES_MAX // 100
    for number in range(count):
        wire.session.submit(GetData(f"/{number:0>150}", watch=True), number)
    wire.sent()
    wire.server_sends(b"".join(reply(n + 1, data_body(b""), zxid=50) for n in range(count)))
    wire.cut()
    requests = wire.reconnect()
    assert codes(requests) == [OpCode.SET_WATCHES, OpCode.SET_WATCHES]

    wire.server_sends(reply(XID_SET_WATCHES, zxid=70))
    wire.cut()
    again = wire.reconnect()

    assert [set_watches(request.body)[0] for request in again] == [50, 50]
    assert wire.connects[-1] == (50, SESSION_ID)
    wire.server_sends(reply(XID_SET_WATCHES, zxid=71) + reply(XID_SET_WATCHES, zxid=72))
    assert wire.session.last_zxid == 72


def test_many_watches_are_armed_in_pieces_under_the_servers_limit() -> None:
    wire = Wire().connect()
    paths = [f"/{number:0>240}" for number in range(3_000)]
    for path in paths:
        wire.session.submit(GetData(path, watch=True), path)
    wire.sent()
    wire.server_sends(b"".join(reply(n + 1, data_body(b"")) for n in range(len(paths))))
    wire.cut()

    requests = wire.reconnect()

    assert len(requests) > 3
    assert all(len(request.body) < SET_WATCHES_BYTES_MAX + 1_000 for request in requests)
    assert sorted(path for request in requests for path in set_watches(request.body)[1]) == sorted(paths)


def test_watches_below_a_chroot_are_armed_with_the_servers_paths() -> None:
    wire = Wire("zk/ch").connect()
    wire.session.submit(GetChildren("/", watch=True), "root")
    wire.session.submit(GetChildren("/a", watch=True), "a")
    wire.sent()
    wire.server_sends(reply(1, NO_CHILDREN) + reply(2, NO_CHILDREN))
    wire.cut()

    (request,) = wire.reconnect()

    assert set_watches(request.body)[3] == ("/ch", "/ch/a")


def test_events_that_answer_the_arming_are_told_and_not_armed_again() -> None:
    wire = a_wire_watching_everything()
    wire.cut()
    wire.reconnect()
    wire.told()

    wire.server_sends(notification(WatchKind.CREATED, "/missing") + reply(XID_SET_WATCHES, zxid=30))

    assert wire.told() == [WatchEvent(WatchKind.CREATED, "/missing")]
    wire.cut()
    (request,) = wire.reconnect()
    assert set_watches(request.body) == (30, ("/data", "/there"), (), ("/parent",))


def test_a_server_that_does_not_arm_the_watches_again_is_left_with_all_of_them_kept() -> None:
    wire = a_wire_watching_everything()
    wire.cut()
    first = wire.reconnect()

    wire.server_sends(reply(XID_SET_WATCHES, code=ZkCode.MARSHALLING_ERROR))

    assert wire.reconnect() == first


def test_expiry_ends_all_watches() -> None:
    wire = a_wire_watching_everything()
    wire.cut()
    wire.run_until_attempt()
    wire.accept()
    wire.server_sends(connect_reply(0, 0))
    assert isinstance(wire.told()[-1], SessionExpired)

    wire.accept()
    wire.server_sends(connect_reply(5))

    assert wire.sent() == []


def test_writes_and_many_reads_arm_nothing() -> None:
    wire = Wire().connect()
    wire.session.submit(SetData("/a", b"", 1), "write")
    wire.session.submit(MultiRead(()), "reads")
    wire.sent()

    wire.server_sends(reply(1, stat_bytes()) + reply(2, struct.pack(">i?i", -1, True, -1)))

    assert len(wire.session.watches) == 0
    assert len(Stat.__struct_fields__) == 11
