"""The server in memory: what one client does, another one is told, and nothing of a failed multi stays."""

from __future__ import annotations

import struct

import pytest

from ottla.zookeeper.server.server import Server, ServerConfig
from ottla.zookeeper.server.tree import Tree
from support.zookeeper.raw import (
    CHECK,
    CLOSE,
    CREATE,
    CREATE_2,
    CREATE_CONTAINER,
    CREATE_TTL,
    DELETE,
    EXISTS,
    GET_CHILDREN_2,
    GET_DATA,
    MULTI,
    SASL,
    SET_DATA,
    Answers,
    MemoryWire,
    RawClient,
    acl_bytes,
    create,
    integer,
    long,
    multi,
    text,
)

WALL_MS = 1_700_000_000_000
answers = Answers()


@pytest.fixture
def server() -> Server:
    return Server(ServerConfig(), Tree(), now_ms=0, wall_ms=WALL_MS)


def client(server: Server, **options: int) -> RawClient:
    made = RawClient(MemoryWire(server))
    assert made.connect(**options)
    return made


def whole_tree(server: Server) -> dict[str, tuple[object, ...]]:
    nodes = server.tree.nodes.items()
    return {path: (node.data, node.acl, node.owner, node.stat(), dict(node.children)) for path, node in nodes}


def test_nothing_of_a_failed_multi_stays(server: Server) -> None:
    asker = client(server)
    for path in ("/a", "/a/b", "/c"):
        asker.ask(CREATE, create(path))
    asker.ask(CREATE, create("/e", flags=1))
    before = whole_tree(server)
    ephemerals = {session: dict(paths) for session, paths in server.tree.ephemerals.items()}

    failed = asker.ask(
        MULTI,
        multi(
            (CREATE, create("/a/n")),
            (CREATE, create("/a/own", flags=1)),
            (CREATE_CONTAINER, create("/a/box", flags=4)),
            (CREATE_TTL, create("/a/ttl", flags=5) + long(1_000)),
            (SET_DATA, text("/c") + text(b"x") + integer(-1)),
            (SET_DATA, text("/c") + text(b"y") + integer(1)),
            (DELETE, text("/e") + integer(-1)),
            (DELETE, text("/c") + integer(-1)),
            (CREATE, create("/c", b"again")),
            (CHECK, text("/a") + integer(7)),
        ),
    )

    assert failed is not None
    assert [code for _, code, _ in answers.read(MULTI, failed)[2]] == [0] * 9 + [-103]
    assert whole_tree(server) == before
    assert server.tree.ephemerals == ephemerals
    assert (server.tree.containers, server.tree.with_ttl, server.tree.changes) == ({}, {}, [])


def test_a_failed_multi_fires_no_watch(server: Server) -> None:
    asker, watcher = client(server), client(server)
    watcher.ask(EXISTS, text("/a") + b"\1")

    asker.ask(MULTI, multi((CREATE, create("/a")), (CHECK, text("/none") + integer(0))))
    watcher.ping()
    assert watcher.taken_events() == []

    asker.ask(CREATE, create("/a"))
    watcher.ping()
    assert [event[1:] for event in watcher.taken_events()] == [(1, "/a")]


def test_an_event_comes_before_the_answer_that_shows_the_change(server: Server) -> None:
    both = client(server)
    both.ask(GET_CHILDREN_2, text("/") + b"\1")

    both.ask(CREATE, create("/a"))

    assert [event[1:] for event in both.taken_events()] == [(4, "/")]


def test_a_session_ends_in_the_tick_after_its_time_out(server: Server) -> None:
    owner, watcher = client(server, timeout_ms=4_000), client(server, timeout_ms=40_000)
    owner.ask(CREATE, create("/mine", flags=1))
    watcher.ask(EXISTS, text("/mine") + b"\1")

    server.begin_turn(5_999, WALL_MS)
    server.tick()
    assert "/mine" in server.tree.nodes

    assert server.next_tick_ms() == 6_000
    server.begin_turn(6_000, WALL_MS)
    server.tick()

    assert "/mine" not in server.tree.nodes
    watcher.ping()
    assert [event[1:] for event in watcher.taken_events()] == [(2, "/mine")]
    assert owner.ping() is None


def test_a_session_that_is_heard_goes_on(server: Server) -> None:
    owner = client(server, timeout_ms=4_000)
    for now_ms in range(3_000, 60_000, 3_000):
        server.begin_turn(now_ms, WALL_MS)
        server.tick()
        assert owner.ping() is not None


def test_a_session_over_another_connection_ends_the_first(server: Server) -> None:
    first = client(server)
    first.ask(EXISTS, text("/a") + b"\1")
    second = RawClient(MemoryWire(server), session=first.session, password=first.password)

    assert second.connect()

    assert first.ping() is None
    second.ask(CREATE, create("/a"))
    assert second.taken_events() == [], "its watches went with the connection"


def test_a_session_that_was_closed_cannot_be_resumed(server: Server) -> None:
    first = client(server)
    first.ask(CLOSE)

    again = RawClient(MemoryWire(server), session=first.session, password=first.password)

    assert not again.connect()


def test_containers_and_old_nodes_are_removed_once_a_minute(server: Server) -> None:
    maker = client(server)
    maker.ask(CREATE_CONTAINER, create("/box", flags=4))
    maker.ask(CREATE_CONTAINER, create("/never-used", flags=4))
    maker.ask(CREATE_TTL, create("/brief", flags=5) + long(50_000))
    maker.ask(CREATE_TTL, create("/long", flags=5) + long(70_000))
    maker.ask(CREATE, create("/box/x"))
    maker.ask(DELETE, text("/box/x") + integer(-1))

    for second in range(10, 61, 10):
        server.begin_turn(second * 1_000, WALL_MS + second * 1_000)
        maker.ping()
        server.tick()

    assert {"/never-used", "/long"} <= server.tree.nodes.keys()
    assert not {"/box", "/brief"} & server.tree.nodes.keys()


def test_a_client_that_does_not_read_is_not_served_further(server: Server) -> None:
    greedy = client(server)
    greedy.ask(CREATE, create("/big", bytes(900_000)))
    wire = greedy.wire
    assert isinstance(wire, MemoryWire)
    body = integer(1) + integer(GET_DATA) + text("/big") + b"\0"

    wire.send((integer(len(body)) + body) * 100)

    assert wire.connection.out_bytes < 6_000_000
    answered = 0
    while wire.connection.out or wire.connection.waiting:
        answered += len(wire.connection.take_out())
        wire.send(b"")
    assert answered == 100


def test_bytes_may_come_one_by_one(server: Server) -> None:
    asker = client(server)
    body = integer(5) + integer(CREATE_2) + create("/a", b"data")

    for byte in integer(len(body)) + body:
        asker.wire.send(bytes([byte]))

    frame = asker.wire.frame()
    assert frame is not None
    assert struct.unpack_from(">i", frame) == (5,)


@pytest.mark.parametrize("size", [-1, 0xFFFFF + 1, 2**31 - 1])
def test_a_frame_of_no_possible_size_ends_the_connection(server: Server, size: int) -> None:
    asker = client(server)

    asker.wire.send(integer(size))

    assert asker.wire.frame() is None


def test_sasl_is_refused_by_its_code(server: Server) -> None:
    asker = client(server)

    refused = asker.ask(SASL, text(b"token"))

    assert refused is not None
    assert refused.code == -6
    assert asker.ping() is None


def test_every_write_takes_one_transaction_refused_or_not(server: Server) -> None:
    asker = client(server)
    first = server.tree.zxid
    asker.ask(CREATE, create("/a"))
    asker.ask(CREATE, create("/a"))
    asker.ask(CREATE, text("/b") + text(b"") + acl_bytes(()) + integer(0))
    asker.ask(MULTI, multi((CHECK, text("/none") + integer(0))))
    asker.ask(MULTI, multi())
    asker.ask(EXISTS, text("/none") + b"\0")

    assert server.tree.zxid == first + 5
    assert [header.zxid for header, _ in server.records] == list(range(1, first + 6))
