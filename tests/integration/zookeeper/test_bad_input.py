"""What goes wrong before there is a session: one sentence with the cause and the next step."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import suppress

import pytest

from ottla.server.zookeeper.blocking import BlockingZooKeeper, ZooKeeperRefused
from ottla.server.zookeeper.session import ZooKeeperClient, ZooKeeperUnavailable
from ottla.zookeeper.ops import CREATOR_ALL, Exists, Found, SessionConnected
from support.zookeeper.chroots import Chroot

pytestmark = [pytest.mark.java, pytest.mark.slow]

HINT = "check that it runs and that zookeeper.connect names it."


def why_not(connect: str, limit_ms: int = 2_000) -> str:
    with pytest.raises(ZooKeeperUnavailable) as refusal:
        BlockingZooKeeper(connect, limit_ms=limit_ms).open()
    return str(refusal.value)


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


@pytest.fixture
def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
    return port


def test_a_host_that_nobody_knows() -> None:
    text = why_not("no-such-host.invalid:2181", 3_000)

    assert "no-such-host.invalid:2181" in text
    assert "name" in text or "resolution" in text
    assert text.endswith(HINT)


def test_a_host_whose_name_cannot_be_one() -> None:
    assert "that is not a host name" in why_not(f"{'x' * 70}.example:2181")


def test_an_ensemble_that_cannot_be_reached_names_each_server(closed_port: int) -> None:
    text = why_not(f"127.0.0.1:{closed_port},localhost:{closed_port}")

    assert text.count("connection refused") == 2
    assert text.endswith(HINT)


def test_a_server_that_never_answers(silent_port: int) -> None:
    with pytest.raises(ZooKeeperUnavailable) as refusal:
        BlockingZooKeeper(f"127.0.0.1:{silent_port}", session_timeout_ms=300, limit_ms=3_000).open()

    assert "it did not answer in time" in str(refusal.value)


def test_a_server_that_is_no_zookeeper() -> None:
    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-OpenSSH_9.2p1 Debian\r\n")
        with suppress(ConnectionError):
            while await reader.read(1024):
                pass
        writer.close()

    async def scenario() -> None:
        server = await asyncio.start_server(greet, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        try:
            await ZooKeeperClient.connect(f"127.0.0.1:{port}", limit_ms=2_000)
        finally:
            server.close()

    with pytest.raises(ZooKeeperUnavailable, match="does not speak ZooKeeper's protocol"):
        asyncio.run(scenario())


def test_a_connect_string_that_is_none() -> None:
    assert why_not("host:port") == "'host:port' does not name a ZooKeeper ensemble: 'port' is not a port."


def test_a_chroot_that_does_not_exist_is_named(zookeeper: Chroot) -> None:
    text = why_not(zookeeper.connect + "/nowhere", 5_000)

    assert f"has no node {zookeeper.chroot}/nowhere" in text
    assert "check the path" in text


def test_a_missing_chroot_is_made_on_demand_by_those_who_may(zookeeper: Chroot) -> None:
    connect = zookeeper.connect + "/made/on/demand"
    with BlockingZooKeeper(connect, needs_chroot=False) as client:
        client.create_chroot()
        client.create_chroot()
        client.create("/a", b"1")

    with BlockingZooKeeper(zookeeper.connect) as above:
        assert above.get("/made/on/demand/a").data == b"1"


def test_a_wrong_password_is_refused_with_what_to_check(zookeeper: Chroot) -> None:
    with BlockingZooKeeper(zookeeper.connect, auth=[("digest", b"alice:right")]) as alice:
        alice.create("/private", b"", acl=CREATOR_ALL)

    with (
        BlockingZooKeeper(zookeeper.connect, auth=[("digest", b"alice:wrong")]) as mallory,
        pytest.raises(ZooKeeperRefused) as refusal,
    ):
        mallory.get("/private")

    assert "/private: this login may not do that; check the user and the password" in str(refusal.value)


def test_a_login_scheme_that_the_servers_do_not_know(zookeeper: Chroot) -> None:
    with pytest.raises(ZooKeeperUnavailable) as refusal:
        BlockingZooKeeper(zookeeper.connect, auth=[("kerberos", b"x")]).open()

    assert "refuse the login (AUTH_FAILED); check the user and the password." in str(refusal.value)


def test_plain_calls_say_what_was_refused(zookeeper: Chroot) -> None:
    with BlockingZooKeeper(zookeeper.connect) as client:
        client.create("/a/b", with_parents=True)
        for call, text in (
            (lambda: client.get("/none"), "refused to read /none: there is no such node (NO_NODE)."),
            (lambda: client.create("/a"), "refused to make /a: the node is there already (NODE_EXISTS)."),
            (lambda: client.delete("/a"), "refused to delete /a: it has children"),
            (lambda: client.set("/a", b"", 7), "refused to write /a: somebody changed it meanwhile"),
        ):
            with pytest.raises(ZooKeeperRefused) as refusal:
                call()
            assert text in str(refusal.value)
        client.delete("/a", recursive=True)
        assert client.exists("/a") is None
        assert client.get_or_none("/a") is None


def test_a_closed_client_says_so(zookeeper: Chroot) -> None:
    with BlockingZooKeeper(zookeeper.connect) as client:
        pass

    with pytest.raises(ZooKeeperUnavailable, match="session is closed"):
        client.get("/")


def test_the_blocking_client_gives_outcomes_as_values_too(zookeeper: Chroot) -> None:
    with BlockingZooKeeper(zookeeper.connect) as client:
        assert isinstance(client.run(Exists("/")), Found)
        assert len(client.multi([])) == 0
        assert isinstance(client.events.get(timeout=5), SessionConnected)
