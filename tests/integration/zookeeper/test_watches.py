"""Watches on a bad network: none is lost while the session lives, and each fires once."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from kazoo.client import KazooClient

from ottla.server.zookeeper.session import ZooKeeperClient
from ottla.zookeeper.batches import WRITES_MAX, plan_fenced_writes
from ottla.zookeeper.ops import (
    Check,
    Children,
    Create,
    Data,
    Exists,
    Failed,
    GetChildren,
    GetData,
    MultiDone,
    MultiFailed,
    SessionConnected,
    SessionExpired,
    SetData,
    Sync,
    WatchEvent,
    WatchKind,
    ZkCode,
)
from support.wire.tcp_proxy import TcpProxy, Way
from support.zookeeper.chroots import Chroot
from support.zookeeper.client import Heard, a_client, eventually

pytestmark = [pytest.mark.java, pytest.mark.slow]

LASTING = {"session_timeout_ms": 10_000}


Arm = Callable[[ZooKeeperClient], Awaitable[object]]
Change = Callable[[KazooClient], object]


async def away(
    proxy: TcpProxy,
    zookeeper: Chroot,
    other: KazooClient,
    arm: Arm,
    change: Change,
    then: Change | None = None,
) -> list[tuple[WatchKind, str]]:
    """Arm, lose the connection, change, come back; after that perhaps change again. The watch events."""
    async with a_client(proxy.address + zookeeper.chroot, **LASTING) as (client, heard):
        await arm(client)
        proxy.refuse()
        change(other)
        proxy.heal()
        again = await heard.until(SessionConnected, 2)
        assert not again.is_new
        await client.submit(Sync("/"))
        if then is not None:
            told_before = list(heard.watches)
            then(other)
            await heard.until(WatchEvent, len(told_before) + 1)
        await client.submit(Sync("/"))
        return heard.watches


def no_change(_: KazooClient) -> None:
    """Nothing happens meanwhile."""


def create_and_delete(other: KazooClient) -> None:
    other.create("/missing")
    other.delete("/missing")


def change_twice(other: KazooClient) -> None:
    other.set("/there", b"2")
    other.set("/there", b"3")


@pytest.mark.parametrize(
    ("arm", "change", "then", "events"),
    [
        pytest.param(
            lambda c: c.submit(GetData("/there", watch=True)),
            lambda o: o.set("/there", b"2"),
            None,
            [(WatchKind.DATA_CHANGED, "/there")],
            id="data changed",
        ),
        pytest.param(
            lambda c: c.submit(GetData("/there", watch=True)),
            lambda o: o.delete("/there"),
            None,
            [(WatchKind.DELETED, "/there")],
            id="node deleted",
        ),
        pytest.param(
            lambda c: c.submit(Exists("/missing", watch=True)),
            lambda o: o.create("/missing"),
            None,
            [(WatchKind.CREATED, "/missing")],
            id="node created",
        ),
        pytest.param(
            lambda c: c.submit(GetChildren("/there", watch=True)),
            lambda o: o.create("/there/child"),
            None,
            [(WatchKind.CHILDREN_CHANGED, "/there")],
            id="child created",
        ),
        pytest.param(
            lambda c: c.submit(GetChildren("/", watch=True)),
            lambda o: o.create("/sibling"),
            None,
            [(WatchKind.CHILDREN_CHANGED, "/")],
            id="child of the chroot created",
        ),
        pytest.param(
            lambda c: c.submit(GetData("/there", watch=True)),
            no_change,
            lambda o: o.set("/there", b"2"),
            [(WatchKind.DATA_CHANGED, "/there")],
            id="data changed only afterwards",
        ),
        pytest.param(
            lambda c: c.submit(GetData("/there", watch=True)),
            change_twice,
            None,
            [(WatchKind.DATA_CHANGED, "/there")],
            id="two changes are one event",
        ),
        pytest.param(
            lambda c: c.submit(Exists("/missing", watch=True)),
            create_and_delete,
            lambda o: o.create("/missing"),
            [(WatchKind.CREATED, "/missing")],
            id="created and deleted meanwhile is not seen but the watch stays",
        ),
    ],
)
def test_a_watch_outlives_the_connection(
    proxy: TcpProxy,
    zookeeper: Chroot,
    other: KazooClient,
    arm: Arm,
    change: Change,
    then: Change | None,
    events: list[tuple[WatchKind, str]],
) -> None:
    """ZP4 and ZP5."""
    other.create("/there", b"1")

    assert asyncio.run(away(proxy, zookeeper, other, arm, change, then)) == events


def test_a_watch_fires_once_until_it_is_armed_again(zookeeper: Chroot, other: KazooClient) -> None:
    """ZP4."""

    async def scenario() -> None:
        other.create("/a", b"0")
        async with a_client(zookeeper.connect) as (client, heard):
            await client.submit(GetData("/a", watch=True))
            for number in (b"1", b"2"):
                other.set("/a", number)
            await client.submit(Sync("/"))
            assert heard.watches == [(WatchKind.DATA_CHANGED, "/a")]

            again = await client.submit(GetData("/a", watch=True))
            assert isinstance(again, Data)
            assert again.data == b"2"
            other.set("/a", b"3")
            await heard.until(WatchEvent, 2)

    asyncio.run(scenario())


def test_a_watched_read_whose_answer_was_lost_is_armed_by_its_second_asking(
    proxy: TcpProxy, zookeeper: Chroot, other: KazooClient
) -> None:
    async def scenario() -> None:
        other.create("/a", b"0")
        async with a_client(proxy.address + zookeeper.chroot, **LASTING) as (
            client,
            heard,
        ):
            proxy.freeze(Way.TO_CLIENT)
            read = client.submit(GetData("/a", watch=True))
            proxy.cut()
            proxy.heal()
            assert isinstance(await read, Data)

            other.set("/a", b"1")

            assert await heard.until(WatchEvent) == WatchEvent(WatchKind.DATA_CHANGED, "/a")

    asyncio.run(scenario())


def test_an_event_that_was_lost_on_the_way_is_told_after_the_reconnect(
    proxy: TcpProxy, zookeeper: Chroot, other: KazooClient
) -> None:
    async def scenario() -> None:
        other.create("/a", b"0")
        async with a_client(proxy.address + zookeeper.chroot, **LASTING) as (
            client,
            heard,
        ):
            await client.submit(GetData("/a", watch=True))
            proxy.freeze(Way.TO_CLIENT)
            other.set("/a", b"1")
            assert heard.watches == []

            proxy.cut()
            proxy.heal()

            assert await heard.until(WatchEvent) == WatchEvent(WatchKind.DATA_CHANGED, "/a")

    asyncio.run(scenario())


def test_thousands_of_watches_are_armed_again_in_pieces(
    proxy: TcpProxy, zookeeper: Chroot, other: KazooClient
) -> None:
    async def scenario() -> None:
        async with a_client(proxy.address + zookeeper.chroot, **LASTING) as (
            client,
            heard,
        ):
            names = [f"/{number:0>150}" for number in range(2_000)]
            for request in plan_fenced_writes(Check("/", 0), [Create(name) for name in names]):
                assert isinstance(await client.submit(request), MultiDone)
            await asyncio.gather(*(client.submit(Exists(name, watch=True)) for name in names))
            proxy.refuse()
            other.set(names[7], b"meanwhile")
            proxy.heal()
            assert await heard.until(WatchEvent) == WatchEvent(WatchKind.DATA_CHANGED, names[7])

            for name in names[-5:]:
                other.set(name, b"later")
            await heard.until(WatchEvent, 6)

            assert sorted(path for _, path in heard.watches) == sorted([names[7], *names[-5:]])

    asyncio.run(scenario())


def test_watches_end_with_the_session_and_the_listener_is_told(
    proxy: TcpProxy, zookeeper: Chroot, other: KazooClient
) -> None:
    async def scenario() -> None:
        other.create("/a", b"0")
        async with a_client(proxy.address + zookeeper.chroot, session_timeout_ms=1_000) as (client, heard):
            await client.submit(GetData("/a", watch=True))
            await client.submit(Create("/me", ephemeral=True))
            proxy.refuse()
            await eventually(lambda: other.exists("/me") is None, "the server ends the session")
            proxy.heal()
            await heard.until(SessionExpired)
            await heard.until(SessionConnected, 2)

            other.set("/a", b"1")
            await client.submit(Sync("/"))

            assert heard.watches == []

    asyncio.run(scenario())


def test_events_come_before_the_data_that_they_announce(zookeeper: Chroot, other: KazooClient) -> None:
    async def scenario() -> None:
        other.create("/a", b"0")
        heard = Heard()
        client = await ZooKeeperClient.connect(zookeeper.connect, listener=heard)
        order: list[tuple[int, int]] = []

        def note(result: object) -> None:
            assert isinstance(result, Data)
            order.append((int(result.data or b"-1"), len(heard.watches)))

        for number in range(50):
            await client.submit(GetData("/a", watch=True))
            before = len(heard.watches)
            change = other.set_async("/a", b"%d" % (number + 1))
            while len(heard.watches) == before:
                client.submit_then(GetData("/a"), note)
                await asyncio.sleep(0)
            change.get()
        await client.close()

        for change_seen, events_told in order:
            assert change_seen <= events_told, "data of a change whose event was not yet told"

    asyncio.run(scenario())


def test_a_list_of_children_over_a_mebibyte_is_read(zookeeper: Chroot) -> None:
    """ZP9."""

    async def scenario() -> None:
        async with a_client(zookeeper.connect) as (client, _):
            names = [f"{number:0>240}" for number in range(9_000)]
            for request in plan_fenced_writes(Check("/", 0), [Create(f"/{name}") for name in names]):
                assert isinstance(await client.submit(request), MultiDone)

            listed = await client.submit(GetChildren("/"))

            assert isinstance(listed, Children)
            assert sorted(listed.names) == names

    asyncio.run(scenario())


def test_many_reads_whose_answer_is_too_large_are_asked_in_smaller_pieces(zookeeper: Chroot) -> None:
    """ZP9."""

    async def scenario() -> None:
        async with a_client(zookeeper.connect) as (client, heard):
            for number in range(60):
                await client.submit(Create(f"/{number}", bytes([number]) * 100_000))

            results = await client.read_many([GetData(f"/{number}") for number in range(61)])

            assert [r.data[:1] for r in results if isinstance(r, Data) and r.data] == [
                bytes([n]) for n in range(60)
            ]
            assert results[60] == Failed(ZkCode.NO_NODE)
            assert [type(event) for event in heard.session] == [SessionConnected]

    asyncio.run(scenario())


def test_many_writes_stand_or_fall_with_their_fence(zookeeper: Chroot) -> None:
    async def scenario() -> None:
        async with a_client(zookeeper.connect) as (client, _):
            await client.submit(Create("/fence"))
            fence = Check("/fence", 0)

            creates = plan_fenced_writes(fence, [Create(f"/{number}") for number in range(40 * WRITES_MAX)])
            made = await asyncio.gather(*map(client.submit, creates))
            await client.submit(SetData("/fence", b"another's", 0))
            (too_late,) = plan_fenced_writes(fence, [SetData(f"/{number}", b"x", 0) for number in range(3)])
            late = await client.submit(too_late)
            untouched = await client.read_many(GetData(f"/{number}") for number in range(3))

            assert [type(outcome) for outcome in made] == [MultiDone] * 40
            assert isinstance(late, MultiFailed)
            assert (late.index, late.code) == (0, ZkCode.BAD_VERSION)
            assert [read.data for read in untouched if isinstance(read, Data)] == [None] * 3

    asyncio.run(scenario())
