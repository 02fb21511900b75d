"""Apache's server over a directory, with a random history of clients, and what its clients then see."""

from __future__ import annotations

import subprocess
from collections import namedtuple
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from kazoo.protocol.serialization import int_struct, long_struct, write_buffer, write_string
from kazoo.security import OPEN_ACL_UNSAFE, READ_ACL_UNSAFE, make_digest_acl

from ottla.launch import embedded_zookeeper
from ottla.launch.embedded_zookeeper import EmbeddedZooKeeper
from ottla.launch.java import find_java
from ottla.launch.zookeeper.jars import zookeeper_jars
from ottla.zookeeper.server.txns import CONTAINER_OWNER, TTL_OWNER, StoredNode
from support.processes.lab import kafka_jars

TIMEOUT_S = 40.0
PATHS = ("/a", "/b", "/a/x", "/a/y", "/b/x", "/a/x/p", "/b/ä")
ACLS = (
    OPEN_ACL_UNSAFE,
    OPEN_ACL_UNSAFE,
    [make_digest_acl("u", "p", all=True)],
    OPEN_ACL_UNSAFE + READ_ACL_UNSAFE,
)


def jars_of(version: str) -> list[Path]:
    """The jars of ZooKeeper 3.9, which comes with Spark, or 3.8, which comes with Kafka 3.9."""
    if version == "3.9":
        return zookeeper_jars()
    directory = kafka_jars()
    patterns = ("zookeeper-[0-9]*.jar", "zookeeper-jute-*.jar", "slf4j-api-*.jar", "metrics-core-4*.jar")
    return [
        jar
        for pattern in (*patterns, "netty-*.jar", "commons-*.jar", "snappy-*.jar")
        for jar in directory.glob(pattern)
    ]


@contextmanager
def apache(version: str, data_dir: Path, **properties: str) -> Iterator[EmbeddedZooKeeper]:
    """A running server of that version; whoever kills it before the end is not hindered."""
    names = {"zookeeper.extendedTypesEnabled": "true", **properties}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(embedded_zookeeper, "zookeeper_jars", lambda: jars_of(version))
        with EmbeddedZooKeeper(data_dir, properties=names) as server:
            yield server


def run_class(version: str, name: str, *arguments: object) -> str:
    """What one of ZooKeeper's own tools prints."""
    class_path = ":".join(map(str, jars_of(version)))
    command = [str(find_java().executable), "-cp", class_path, name, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


class CreateMarked(namedtuple("CreateMarked", "path data flags ttl_ms")):
    """A container, or a node with a time to live: kazoo knows neither."""

    __slots__ = ()

    @property
    def type(self) -> int:
        return 21 if self.ttl_ms else 19

    def serialize(self) -> bytes:
        acl = int_struct.pack(1) + int_struct.pack(31) + write_string("world") + write_string("anyone")
        ttl = long_struct.pack(self.ttl_ms) if self.ttl_ms else b""
        return bytes(
            write_string(self.path) + write_buffer(self.data) + acl + int_struct.pack(self.flags) + ttl
        )

    def deserialize(self, content: bytes, offset: int) -> None:
        """Nobody looks at the answer."""


class Clients:
    """Several clients that do at random what clients do."""

    def __init__(self, connect: str, random: Random, count: int = 3) -> None:
        self._connect = connect
        self._random = random
        self.open: list[KazooClient] = []
        for _ in range(count):
            self.begin()

    def begin(self) -> None:
        client = KazooClient(self._connect, timeout=TIMEOUT_S)
        client.start()
        client.add_auth("digest", "u:p")
        self.open.append(client)

    def end(self) -> None:
        client = self.open.pop(self._random.randrange(len(self.open)))
        client.stop()
        client.close()

    def act(self) -> None:
        """One thing; the server may refuse it."""
        chance = self._random.random()
        if chance < 0.02 and len(self.open) > 1:
            self.end()
        elif chance < 0.04:
            self.begin()
        else:
            with suppress(KazooException):
                self._ask(self._random.choice(self.open))

    def _ask(self, client: KazooClient) -> None:
        random, path = self._random, self._random.choice(PATHS)
        data = random.choice((b"", random.randbytes(30)))
        kind = random.randrange(12)
        if kind < 3:
            client.create(path, data, acl=random.choice(ACLS), include_data=random.random() < 0.5)
        elif kind == 3:
            client.create(path, data, ephemeral=True)
        elif kind == 4:
            client.create(f"{path}/s-", data, sequence=True, ephemeral=random.random() < 0.5)
        elif kind == 5:
            self._create_marked(client, path, data)
        elif kind < 8:
            client.set(path, data, random.choice((-1, -1, 0, 1)))
        elif kind == 8:
            client.set_acls(path, random.choice(ACLS))
        elif kind == 9:
            client.delete(path, recursive=random.random() < 0.5)
        else:
            self._multi(client, path, data)

    def _create_marked(self, client: KazooClient, path: str, data: bytes) -> None:
        ttl_ms = self._random.choice((0, 3_600_000))
        result = client.handler.async_result()
        client._call(CreateMarked(path, data, 5 if ttl_ms else 4, ttl_ms), result)
        result.get()

    def _multi(self, client: KazooClient, path: str, data: bytes) -> None:
        random = self._random
        transaction = client.transaction()
        for _ in range(random.randint(1, 4)):
            other = random.choice(PATHS)
            kind = random.randrange(4)
            if kind == 0:
                transaction.create(other, data, acl=random.choice(ACLS), ephemeral=random.random() < 0.3)
            elif kind == 1:
                transaction.set_data(other, data)
            elif kind == 2:
                transaction.delete(other)
            else:
                transaction.check(path, 0)
        transaction.commit()

    def sessions(self) -> dict[int, int]:
        """The time-outs of the sessions that are open."""
        return {client.client_id[0]: int(TIMEOUT_S * 1000) for client in self.open}

    def close(self) -> None:
        while self.open:
            self.end()


def seen_by(client: KazooClient) -> dict[str, Any]:
    """Every node as a client sees it."""
    seen: dict[str, Any] = {}
    paths = ["/"]
    while paths:
        path = paths.pop()
        data, stat = client.get(path)
        acl, _ = client.get_acls(path)
        seen[path] = data, tuple((each.perms, each.id.scheme, each.id.id) for each in acl), tuple(stat)
        paths += [f"{path.rstrip('/')}/{name}" for name in client.get_children(path)]
    return seen


def shown(nodes: dict[str, StoredNode]) -> dict[str, Any]:
    """Stored nodes as a client of Apache's server must see them."""
    children = dict.fromkeys(nodes, 0)
    for path in nodes:
        if path != "/":
            children[path.rpartition("/")[0] or "/"] += 1
    return {path: _shown(node, children[path]) for path, node in nodes.items()}


def _shown(node: StoredNode, children: int) -> Any:
    is_marked = node.ephemeral_owner == CONTAINER_OWNER or node.ephemeral_owner & TTL_OWNER == TTL_OWNER
    stat = (
        *(node.czxid, node.mzxid, node.ctime_ms, node.mtime_ms),
        *(node.version, 2 * node.cversion - children, node.aversion),
        *(0 if is_marked else node.ephemeral_owner, len(node.data or b""), children, node.pzxid),
    )
    return node.data, tuple((each.permissions, each.scheme, each.identity) for each in node.acl), stat
