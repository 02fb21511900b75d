"""Three servers: the session moves between them, outlives their leader, and can read the newest."""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from kazoo.client import KazooClient

from ottla.launch.embedded_zookeeper import EmbeddedZooKeeper, Ensemble
from ottla.server.zookeeper.session import ZooKeeperClient
from ottla.zookeeper.ops import (
    ANY_VERSION,
    Create,
    Created,
    Data,
    Exists,
    Found,
    GetData,
    SessionConnected,
    SessionExpired,
    SessionSuspended,
    SetData,
    Sync,
    WatchEvent,
    WatchKind,
)
from support.wire.tcp_proxy import TcpProxy
from support.zookeeper.client import a_client, eventually

pytestmark = [pytest.mark.java, pytest.mark.slow]

TIMEOUT_MS = 10_000


@pytest.fixture(scope="module")
def ensemble(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ensemble]:
    with Ensemble(tmp_path_factory.mktemp("ensemble"), sync=False) as ensemble:
        yield ensemble


@pytest.fixture
def chroot(ensemble: Ensemble, request: pytest.FixtureRequest) -> str:
    """A node of this test's own."""
    client = KazooClient(ensemble.connect)
    client.start()
    path = f"/{request.node.name}"
    client.create(path)
    client.stop()
    client.close()
    return path


def the_one_in_use(proxies: list[TcpProxy]) -> TcpProxy | None:
    """None while a proxy that was refused still takes leave of its client."""
    open_ones = [proxy for proxy in proxies if proxy.open_connections]
    return open_ones[0] if len(open_ones) == 1 else None


def test_a_session_moves_to_another_server_with_its_watches(ensemble: Ensemble, chroot: str) -> None:
    async def scenario(proxies: list[TcpProxy]) -> None:
        connect = ",".join(proxy.address for proxy in proxies) + chroot
        other = await ZooKeeperClient.connect(ensemble.connect + chroot)
        async with a_client(connect, session_timeout_ms=TIMEOUT_MS) as (client, heard):
            await client.submit(Create("/me", b"0", ephemeral=True))
            await client.submit(GetData("/me", watch=True))
            for _ in range(len(proxies) - 1):
                in_use = await eventually(lambda: the_one_in_use(proxies), "one way is in use")
                count = len(heard.watches)
                connections = len([e for e in heard.events if isinstance(e, SessionConnected)])

                in_use.refuse()
                await other.submit(SetData("/me", b"1", ANY_VERSION))
                again = await heard.until(SessionConnected, connections + 1)

                assert not again.is_new
                await heard.until(WatchEvent, count + 1)
                answer = await client.submit(GetData("/me", watch=True))
                assert isinstance(answer, Data)
                assert answer.stat.ephemeral_owner == client.session_id
            assert set(heard.watches) == {(WatchKind.DATA_CHANGED, "/me")}
            for proxy in proxies:
                proxy.heal()
        await other.close()

    with ExitStack() as stack:
        asyncio.run(
            scenario([stack.enter_context(TcpProxy.to(member.connect)) for member in ensemble.members])
        )


def test_a_session_outlives_the_leader_of_the_ensemble(ensemble: Ensemble, chroot: str) -> None:
    async def scenario(leader: EmbeddedZooKeeper) -> None:
        other = await ZooKeeperClient.connect(ensemble.connect + chroot, session_timeout_ms=TIMEOUT_MS)
        async with a_client(ensemble.connect + chroot, session_timeout_ms=TIMEOUT_MS) as (client, heard):
            await client.submit(Create("/me", b"0", ephemeral=True))
            await client.submit(Exists("/news", watch=True))
            session_id = client.session_id

            leader.kill()
            await heard.until(SessionSuspended)
            await heard.until(SessionConnected, 2)
            assert isinstance(await other.submit(Create("/news")), Created)

            assert client.session_id == session_id
            assert {event.session_id for event in heard.events if isinstance(event, SessionConnected)} == {
                session_id
            }
            assert await heard.until(WatchEvent) == WatchEvent(WatchKind.CREATED, "/news")
            there = await client.submit(Exists("/me"))
            assert isinstance(there, Found)
            assert there.stat.ephemeral_owner == session_id
        await other.close()

    leader = ensemble.leader()
    try:
        asyncio.run(scenario(leader))
    finally:
        leader.start()


def test_a_read_after_sync_is_not_older_than_what_was_written_before(ensemble: Ensemble, chroot: str) -> None:
    """ZP7: a server that was left behind answers with old data unless it is told to catch up."""

    async def scenario(follower: EmbeddedZooKeeper, leader: EmbeddedZooKeeper) -> None:
        async with (
            a_client(leader.connect + chroot) as (writer, _),
            a_client(follower.connect + chroot) as (reader, _),
        ):
            await writer.submit(Create("/a", b"0"))
            for number in range(1, 6):
                follower.pause()
                await writer.submit(SetData("/a", b"%d" % number, ANY_VERSION))
                reader.submit(Sync("/a"))
                read = reader.submit(GetData("/a"))
                follower.resume()

                answer = await read

                assert isinstance(answer, Data)
                assert answer.data == b"%d" % number

    leader = ensemble.leader()
    follower = next(member for member in ensemble.members if member is not leader)
    asyncio.run(scenario(follower, leader))


def test_a_member_without_quorum_is_left_for_one_with(ensemble: Ensemble, chroot: str) -> None:
    async def scenario(members: list[EmbeddedZooKeeper]) -> None:
        async with a_client(ensemble.connect + chroot, session_timeout_ms=TIMEOUT_MS) as (client, heard):
            session_id = client.session_id
            for member in members:
                member.kill()
            failures = client._session.ring.failures
            await eventually(lambda: len(failures) == 3 and not client.is_connected, "all were tried")
            write = client.submit(Create("/a"))

            for member in members:
                member.launch()

            assert isinstance(await write, Created)
            assert client.session_id == session_id
            assert not any(isinstance(event, SessionExpired) for event in heard.events)

    members = [member for member in ensemble.members if member is not ensemble.leader()]
    try:
        asyncio.run(scenario(members))
    finally:
        for member in members:
            member.start()
