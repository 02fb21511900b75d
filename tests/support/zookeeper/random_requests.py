"""Random requests for two servers that must answer alike: sensible ones, refused ones, and odd ones."""

from __future__ import annotations

import random

from ottla.zookeeper.ops import digest_identity
from support.zookeeper.raw import (
    ADD_WATCH,
    ALL_CHILDREN,
    CHECK,
    CHECK_WATCHES,
    CREATE,
    CREATE_2,
    CREATE_CONTAINER,
    CREATE_TTL,
    DELETE,
    DELETE_CONTAINER,
    EXISTS,
    GET_ACL,
    GET_CHILDREN,
    GET_CHILDREN_2,
    GET_DATA,
    GET_EPHEMERALS,
    MULTI,
    MULTI_READ,
    RECONFIG,
    REMOVE_WATCHES,
    SET_ACL,
    SET_DATA,
    SET_WATCHES,
    SET_WATCHES_2,
    SYNC,
    WHO_AM_I,
    WORLD,
    Acl,
    acl_bytes,
    create,
    integer,
    long,
    multi,
    text,
    texts,
)

PATHS = ("/a", "/b", "/a/x", "/a/y", "/b/x", "/a/x/p", "/seq", "/seq/n", "/ü")
ODD_PATHS = (
    *("", "/", "a", "//", "/a/", "/a//x", "/a/.", "/a/..", "/a/../b", "/a/.x", "/a/...", "/a\0", "/a\x01b"),
    *("/zookeeper", "/zookeeper/config", "/zookeeper/quota", "/zookeeper/mine", "/\ue000", "/\U0001f600"),
    *("/\x85", "/ ", "/\ufff0"),
)
ANN = digest_identity("ann", "secret")
ACLS: tuple[tuple[Acl, ...] | None, ...] = (
    ((31, "auth", ""),),
    ((1, "world", "anyone"),),
    ((1, "world", "anyone"), (31, "auth", "")),
    ((31, "ip", "127.0.0.1"),),
    ((31, "ip", "127.0.0.0/8"), (1, "world", "anyone")),
    ((31, "ip", "10.0.0.0/8"),),
    ((31, "ip", "10.0.0.0/33"),),
    ((31, "ip", "::1"),),
    ((31, "digest", ANN),),
    ((31, "digest", "noone"),),
    ((31, "digest", "a:b:c"),),
    ((30, "world", "anyone"),),
    ((31, "world", "somebody"),),
    ((27, "world", "anyone"), (27, "world", "anyone")),
    ((0, "world", "anyone"),),
    ((31, "sasl", "ann"),),
    ((31, "nothing", "x"),),
    (),
    None,
)
Request = tuple[int, bytes]


class Requests:
    """A stream of requests; the same seed gives the same."""

    def __init__(self, seed: int, *, odd: float = 0.05, closed: float = 0.1) -> None:
        self.chance = random.Random(seed)
        self._odd = odd
        self._closed = closed

    def path(self) -> str:
        chance = self.chance
        return chance.choice(ODD_PATHS) if chance.random() < self._odd else chance.choice(PATHS)

    def acl(self) -> tuple[Acl, ...] | None:
        return self.chance.choice(ACLS) if self.chance.random() < self._closed else WORLD

    def version(self) -> int:
        return self.chance.choice([-1, -1, -1, 0, 1, 2, -2])

    def creation(self) -> Request:
        chance = self.chance
        data = chance.choice([None, b"", b"data"])
        if chance.random() < self._odd:
            op = chance.choice([CREATE, CREATE_2, CREATE_CONTAINER])
            return op, create(self.path(), data, self.acl(), chance.randrange(-1, 8))
        if chance.random() < 0.1:
            flags, ttl = chance.choice([(5, 5_000_000), (6, 9_000_000), (5, 0), (0, 5), (5, -1), (5, 2**40)])
            return CREATE_TTL, create(self.path(), data, self.acl(), flags) + long(ttl)
        if chance.random() < 0.1:
            return CREATE_CONTAINER, create(self.path(), data, self.acl(), 4)
        flags = chance.choice([0, 0, 0, 0, 1, 1, 2, 3])
        path = "/seq/n" if flags & 2 and chance.random() < 0.7 else self.path()
        return chance.choice([CREATE, CREATE_2]), create(path, data, self.acl(), flags)

    def write(self) -> Request:
        chance = self.chance
        kind = chance.randrange(10)
        if kind < 5:
            return self.creation()
        if kind < 7:
            return DELETE, text(self.path()) + integer(self.version())
        if kind < 9:
            return SET_DATA, text(self.path()) + text(chance.randbytes(3)) + integer(self.version())
        return CHECK, text(self.path()) + integer(self.version())

    def multi(self) -> Request:
        return MULTI, multi(*(self.write() for _ in range(self.chance.randint(0, 5))))

    def read(self) -> Request:
        chance = self.chance
        watch = chance.choice([b"\0", b"\1"])
        op = chance.choice([EXISTS, GET_DATA, GET_CHILDREN, GET_CHILDREN_2])
        return op, text(self.path()) + watch

    def multi_read(self) -> Request:
        reads = [(self.chance.choice([GET_DATA, GET_CHILDREN]), self.path()) for _ in range(3)]
        return MULTI_READ, multi(*((op, text(path) + b"\0") for op, path in reads))

    def some_paths(self) -> bytes:
        return texts([self.path() for _ in range(self.chance.randrange(4))])

    def rare(self, zxid: int) -> Request:
        chance = self.chance
        kind = chance.randrange(12)
        if kind == 0:
            return SYNC, text(self.path())
        if kind == 1:
            return GET_ACL, text(self.path())
        if kind in (2, 3):
            return SET_ACL, text(self.path()) + acl_bytes(self.acl()) + integer(self.version())
        if kind == 4:
            return GET_EPHEMERALS, text(chance.choice(["", "/", "/a", None, "/seq"]))
        if kind == 5:
            return ALL_CHILDREN, text(self.path())
        if kind == 6:
            return ADD_WATCH, text(self.path()) + integer(chance.choice([0, 0, 1, 1, 2, -1]))
        if kind in (7, 8):
            op = chance.choice([CHECK_WATCHES, REMOVE_WATCHES])
            return op, text(self.path()) + integer(chance.randrange(0, 7))
        if kind == 9:
            since = long(max(0, zxid - chance.randrange(20)))
            if chance.random() < 0.5:
                return SET_WATCHES, since + b"".join(self.some_paths() for _ in range(3))
            return SET_WATCHES_2, since + b"".join(self.some_paths() for _ in range(5))
        if kind == 10:
            return chance.choice([WHO_AM_I, DELETE_CONTAINER]), text(self.path())
        return RECONFIG, text(None) + text(None) + text("server.1=x") + long(-1)

    def next(self, zxid: int = 0) -> Request:
        """The next request; ``zxid`` is about where the server is."""
        kind = self.chance.random()
        if kind < 0.35:
            op, body = self.write()
            return (MULTI, multi((op, body))) if op == CHECK else (op, body)
        if kind < 0.5:
            return self.multi()
        if kind < 0.55:
            return self.multi_read()
        return self.read() if kind < 0.8 else self.rare(zxid)
