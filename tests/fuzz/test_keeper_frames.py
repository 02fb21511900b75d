"""Spoiled requests to the keeper: each is answered or ends its connection, and the others do not notice."""

from __future__ import annotations

import os
import struct
from random import Random

import pytest

from ottla.zookeeper.server.server import Server, ServerConfig
from ottla.zookeeper.server.tree import Tree
from support.wire.mutations import mutated
from support.zookeeper.random_requests import Requests
from support.zookeeper.raw import (
    CREATE,
    GET_DATA,
    SET_DATA,
    MemoryWire,
    RawClient,
    create,
    integer,
    text,
)

TIMES = int(os.environ.get("OTTLA_FUZZ_FRAMES", "4000"))
SEED = os.environ.get("OTTLA_FUZZ_SEED", "keeper")

pytestmark = pytest.mark.slow


def a_server() -> Server:
    return Server(ServerConfig(), Tree(), now_ms=0, wall_ms=1_700_000_000_000)


def connected(server: Server) -> RawClient:
    client = RawClient(MemoryWire(server))
    assert client.connect()
    return client


def frame(body: bytes) -> bytes:
    return integer(len(body)) + body


def test_spoiled_requests_never_break_the_server() -> None:
    server, random, requests = a_server(), Random(SEED), Requests(1)
    bystander = connected(server)
    bystander.ask(CREATE, create("/kept", b"0"))
    fuzzed = connected(server)
    for number in range(TIMES):
        op, body = requests.next()
        sent = mutated(random, integer(number) + integer(op) + body)
        before, zxid = fuzzed.wire.connection.sent, server.tree.zxid
        fuzzed.wire.send(frame(sent))

        connection = fuzzed.wire.connection
        assert connection.sent > before or connection.is_closing
        assert zxid <= server.tree.zxid <= zxid + 1
        assert len(server.records) == server.tree.zxid
        connection.take_out()
        if connection.is_closing:
            fuzzed.wire.close()
            fuzzed = connected(server)
        if number % 50 == 0:
            assert bystander.ask(SET_DATA, text("/kept") + text(b"%d" % number) + integer(-1)).code == 0
            assert bystander.ask(GET_DATA, text("/kept") + b"\0").body[4:].startswith(b"%d" % number)


def test_spoiled_streams_end_their_connection_at_most() -> None:
    server, random, requests = a_server(), Random(SEED), Requests(2)
    bystander = connected(server)
    hello = frame(struct.pack(">iqiq", 0, 0, 30_000, 0) + text(bytes(16)) + b"\0")
    for _ in range(TIMES // 4):
        stream = hello + b"".join(
            frame(integer(1) + integer(op) + body) for op, body in (requests.next() for _ in range(3))
        )
        wire = MemoryWire(server)
        spoiled = mutated(random, stream)
        cut = random.randrange(len(spoiled) + 1)
        wire.send(spoiled[:cut])
        wire.send(spoiled[cut:])
        wire.close()

    assert bystander.ping() is not None
    assert len(server.connections) == 1
    assert len(server.watches) == 0
