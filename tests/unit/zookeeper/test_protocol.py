"""ZooKeeper's messages: our bytes are kazoo's, results survive the way through bytes, rubbish is refused."""

import contextlib
import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kazoo.protocol import serialization as kazoo
from kazoo.security import ACL, Id

from ottla.zookeeper.jute import MalformedReply
from ottla.zookeeper.ops import (
    ANY_VERSION,
    Acl,
    AclFound,
    AclSet,
    Check,
    Checked,
    Children,
    Create,
    Created,
    Data,
    DataSet,
    Delete,
    Deleted,
    Exists,
    Failed,
    Found,
    GetAcl,
    GetChildren,
    GetData,
    Multi,
    MultiDone,
    MultiFailed,
    MultiRead,
    Op,
    Result,
    SetAcl,
    SetData,
    Stat,
    Sync,
    Synced,
    ZkCode,
)
from ottla.zookeeper.protocol import (
    CODES,
    encode_op,
    frame_auth,
    frame_connect,
    read_connect_reply,
    read_header,
    read_result,
    read_watch_event,
)
from support.zookeeper.bytes import Wire, buffer_bytes, connect_reply, stat_bytes, text_bytes

FEW = settings(max_examples=30, deadline=None)
MANY = settings(max_examples=3_000, deadline=None)
names = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="/"), min_size=1, max_size=20)
paths = st.lists(names, min_size=1, max_size=4).map(lambda parts: "/" + "/".join(parts))
datas = st.none() | st.binary(max_size=200)
versions = st.integers(0, 2**31 - 1) | st.just(ANY_VERSION)
acls = st.lists(st.builds(Acl, st.integers(0, 31), names, names), max_size=3).map(tuple)
int32 = st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)
stats = st.builds(Stat, int64, int64, int64, int64, int32, int32, int32, int64, int32, int32, int64)

creates = st.builds(Create, paths, datas, st.booleans(), st.booleans(), acls)
deletes = st.builds(Delete, paths, versions)
sets = st.builds(SetData, paths, datas, versions)
checks = st.builds(Check, paths, versions)
multis = st.lists(creates | deletes | sets | checks, max_size=6).map(lambda ops: Multi(tuple(ops)))


def kazoo_acl(acl: tuple[Acl, ...]) -> list[ACL]:
    return [ACL(entry.permissions, Id(entry.scheme, entry.identity)) for entry in acl]


def in_kazoo(op: Any) -> Any:
    match op:
        case Create():
            flags = (1 if op.ephemeral else 0) | (2 if op.sequential else 0)
            return kazoo.Create2(op.path, op.data, kazoo_acl(op.acl), flags)
        case Delete():
            return kazoo.Delete(op.path, int(op.version))
        case SetData():
            return kazoo.SetData(op.path, op.data, int(op.version))
        case Check():
            return kazoo.CheckVersion(op.path, int(op.version))
        case Exists():
            return kazoo.Exists(op.path, op.watch or None)
        case GetData():
            return kazoo.GetData(op.path, op.watch or None)
        case GetChildren():
            return kazoo.GetChildren2(op.path, op.watch or None)
        case GetAcl():
            return kazoo.GetACL(op.path)
        case SetAcl():
            return kazoo.SetACL(op.path, kazoo_acl(op.acl), int(op.version))
        case Sync():
            return kazoo.Sync(op.path)
        case Multi():
            return kazoo.Transaction([in_kazoo(part) for part in op.ops])
    raise AssertionError(op)


@FEW
@given(
    creates
    | deletes
    | sets
    | st.builds(Exists, paths, st.booleans())
    | st.builds(GetData, paths, st.booleans())
    | st.builds(GetChildren, paths, st.booleans())
    | st.builds(GetAcl, paths)
    | st.builds(SetAcl, paths, acls, versions)
    | st.builds(Sync, paths)
    | multis
)
def test_requests_have_the_bytes_of_kazoo(op: Op) -> None:
    other = in_kazoo(op)

    assert encode_op(op) == bytes(other.serialize())
    assert CODES[type(op)] == other.type


@FEW
@given(int64, int32, int64, st.binary(min_size=16, max_size=16))
def test_the_connect_request_has_the_bytes_of_kazoo(
    zxid: int, timeout: int, session: int, password: bytes
) -> None:
    body = bytes(kazoo.Connect(0, zxid, timeout, session, password, False).serialize())

    assert frame_connect(zxid, timeout, session, password) == struct.pack(">i", len(body)) + body


@FEW
@given(names, names)
def test_a_login_has_the_bytes_of_kazoo(scheme: str, credential: str) -> None:
    body = bytes(kazoo.Auth(0, scheme, credential).serialize())

    assert frame_auth(scheme, credential.encode())[12:] == body


@FEW
@given(paths, paths)
def test_a_chroot_stands_before_the_path(chroot: str, path: str) -> None:
    assert encode_op(GetData(path), chroot.encode()) == encode_op(GetData(chroot + path))


# ---- results through bytes ----------------------------------------------------------------------

write_results = (
    st.builds(Created, paths, stats) | st.just(Deleted()) | st.builds(DataSet, stats) | st.just(Checked())
)
read_results = (
    st.builds(Data, datas, stats)
    | st.builds(Children, st.lists(names, max_size=5).map(tuple), st.none())
    | st.builds(Failed, st.sampled_from([ZkCode.NO_NODE, ZkCode.NO_AUTH, ZkCode(-9999)]))
)
END = struct.pack(">i?i", -1, True, -1)


def part_bytes(result: Result) -> bytes:
    match result:
        case Created(path=path, stat=stat):
            kind, body = 15, text_bytes(path) + stat_bytes(stat)
        case Deleted():
            kind, body = 2, b""
        case DataSet(stat=stat):
            kind, body = 5, stat_bytes(stat)
        case Checked():
            kind, body = 13, b""
        case Data(data=data, stat=stat):
            kind, body = 4, buffer_bytes(data) + stat_bytes(stat)
        case Children(names=children):
            kind, body = 8, struct.pack(">i", len(children)) + b"".join(map(text_bytes, children))
        case Failed(code=code):
            kind, body = -1, struct.pack(">i", code)
        case _:
            raise AssertionError(result)
    return struct.pack(">i?i", kind, False, 0 if kind != -1 else struct.unpack(">i", body)[0]) + body


def frame_of(body: bytes) -> bytes:
    return struct.pack(">iqi", 1, 1, 0) + body


@FEW
@given(st.lists(write_results, max_size=8))
def test_the_results_of_a_multi_survive_the_way_through_bytes(results: list[Any]) -> None:
    multi = Multi(tuple(Check("/", 0) for _ in results))
    frame = frame_of(b"".join(map(part_bytes, results)) + END)

    assert read_result(multi, 0, frame, "") == MultiDone(tuple(results))


@FEW
@given(st.lists(read_results, max_size=8))
def test_the_results_of_a_multi_read_survive_the_way_through_bytes(results: list[Any]) -> None:
    reads = MultiRead(tuple(GetData("/") for _ in results))
    frame = frame_of(b"".join(map(part_bytes, results)) + END)

    assert read_result(reads, 0, frame, "") == MultiDone(tuple(results))


@FEW
@given(stats, datas, st.lists(names, max_size=5).map(tuple), acls, paths)
def test_single_results_survive_the_way_through_bytes(
    stat: Stat, data: bytes | None, children: tuple[str, ...], acl: tuple[Acl, ...], path: str
) -> None:
    raw = stat_bytes(stat)
    listed = struct.pack(">i", len(children)) + b"".join(map(text_bytes, children))
    entries = [struct.pack(">i", e.permissions) + text_bytes(e.scheme) + text_bytes(e.identity) for e in acl]
    cases: list[tuple[Op, bytes, Result]] = [
        (GetData(path), buffer_bytes(data) + raw, Data(data, stat)),
        (Exists(path), raw, Found(stat)),
        (GetChildren(path), listed + raw, Children(children, stat)),
        (GetAcl(path), struct.pack(">i", len(acl)) + b"".join(entries) + raw, AclFound(acl, stat)),
        (SetAcl(path, acl, 0), raw, AclSet(stat)),
        (SetData(path, data, 0), raw, DataSet(stat)),
        (Create(path), text_bytes(path) + raw, Created(path, stat)),
        (Delete(path, 0), b"", Deleted()),
        (Sync(path), text_bytes(path), Synced(path)),
    ]

    for op, body, result in cases:
        assert read_result(op, 0, frame_of(body), "") == result


def test_a_failed_multi_names_the_first_operation_that_failed() -> None:
    failed = [Failed(ZkCode.OK), Failed(ZkCode.BAD_VERSION), Failed(ZkCode.RUNTIME_INCONSISTENCY)]
    multi = Multi((Check("/a", 0), Check("/b", 0), Check("/c", 0)))

    outcome = read_result(multi, 0, frame_of(b"".join(map(part_bytes, failed)) + END), "")

    assert outcome == MultiFailed(1, ZkCode.BAD_VERSION, tuple(failed))


def test_a_code_that_is_not_listed_keeps_its_number() -> None:
    assert read_result(GetData("/"), -4242, frame_of(b""), "") == Failed(ZkCode(-4242))
    assert ZkCode(-4242) == -4242
    assert ZkCode(-4242).name == "CODE_-4242"


def test_a_node_made_outside_of_the_chroot_is_refused() -> None:
    with pytest.raises(MalformedReply):
        read_result(Create("/a"), 0, frame_of(text_bytes("/other/a") + stat_bytes()), "/ch")


# ---- rubbish ------------------------------------------------------------------------------------

ANY_OP: list[Op] = [
    Create("/a"),
    Delete("/a", 0),
    SetData("/a", b"", 0),
    Check("/a", 0),
    GetData("/a", watch=True),
    Exists("/a", watch=True),
    GetChildren("/a", watch=True),
    GetAcl("/a"),
    SetAcl("/a", (), 0),
    Sync("/a"),
    Multi((Check("/a", 0), SetData("/a", b"", 0))),
    MultiRead((GetData("/a"), GetChildren("/a"))),
]
VALID_BODIES = [
    frame_of(buffer_bytes(b"data") + stat_bytes()),
    frame_of(text_bytes("/a") + stat_bytes()),
    frame_of(struct.pack(">i", 2) + text_bytes("x") + text_bytes("y") + stat_bytes()),
    frame_of(part_bytes(Checked()) + part_bytes(DataSet(Stat(*range(11)))) + END),
    frame_of(part_bytes(Data(b"d", Stat(*range(11)))) + part_bytes(Children(("a",), None)) + END),
]


@st.composite
def broken_frames(draw: st.DrawFn) -> bytes:
    frame = bytearray(draw(st.sampled_from(VALID_BODIES) | st.binary(max_size=120)))
    for _ in range(draw(st.integers(0, 3))):
        if frame:
            frame[draw(st.integers(0, len(frame) - 1))] = draw(
                st.sampled_from([0, 1, 4, 8, 13, 127, 128, 255])
            )
    return bytes(frame[: draw(st.integers(0, len(frame)))] if draw(st.booleans()) else frame)


def read_as_everything(op: Op, frame: bytes) -> None:
    with contextlib.suppress(MalformedReply):
        read_result(op, 0, frame, "")
    with contextlib.suppress(MalformedReply):
        read_header(frame)
    with contextlib.suppress(MalformedReply):
        read_watch_event(frame, "/ch")
    with contextlib.suppress(MalformedReply):
        read_connect_reply(frame)


@settings(FEW, max_examples=150)
@given(st.sampled_from(ANY_OP), broken_frames())
def test_rubbish_in_a_reply_raises_nothing_but_the_one_declared_error(op: Op, frame: bytes) -> None:
    read_as_everything(op, frame)


@pytest.mark.long
@MANY
@given(st.sampled_from(ANY_OP), broken_frames())
def test_much_rubbish_in_replies_raises_nothing_but_the_one_declared_error(op: Op, frame: bytes) -> None:
    read_as_everything(op, frame)


def test_an_announced_length_is_checked_before_memory_is_taken_for_it() -> None:
    huge = struct.pack(">i", 2**31 - 1)

    for op in (GetData("/a"), GetChildren("/a"), GetAcl("/a"), Create("/a")):
        with pytest.raises(MalformedReply):
            read_result(op, 0, frame_of(huge + stat_bytes()), "")


rubbish = st.lists(st.binary(max_size=80) | broken_frames(), max_size=6)


def feed_rubbish(ops: list[Op], pieces: list[bytes]) -> None:
    wire = Wire("one,two/ch").start()
    wire.accept()
    if len(pieces) % 2:
        wire.server_sends(connect_reply())
    for op in ops:
        wire.session.submit(op, object())
    for number, piece in enumerate(pieces):
        wire.session.bytes_to_send(wire.now_ms)
        framed = struct.pack(">i", len(piece)) + piece if number % 3 else piece
        wire.server_sends(framed)
        wire.pass_ms(number * 500)
        if number % 2:
            wire.session.connection_made(wire.now_ms)
    wire.session.close(wire.now_ms, limit_ms=0)
    wire.pass_ms(0)

    assert len(wire.results()) == len(ops), "every operation ends, and once"


@settings(FEW, max_examples=100)
@given(st.lists(st.sampled_from(ANY_OP), max_size=4), rubbish)
def test_rubbish_on_the_wire_never_gets_through_the_session(ops: list[Op], pieces: list[bytes]) -> None:
    feed_rubbish(ops, pieces)


@pytest.mark.long
@MANY
@given(st.lists(st.sampled_from(ANY_OP), max_size=4), rubbish)
def test_much_rubbish_on_the_wire_never_gets_through_the_session(ops: list[Op], pieces: list[bytes]) -> None:
    feed_rubbish(ops, pieces)
