"""A mirror kept by watches alone, while the connection is cut again and again in the middle of things."""

import asyncio
import random
from functools import partial

import pytest

from ottla.server.zookeeper.blocking import BlockingZooKeeper
from ottla.server.zookeeper.session import Notification, ZooKeeperClient
from ottla.zookeeper.ops import (
    ANY_VERSION,
    Children,
    Create,
    Data,
    Delete,
    Exists,
    Failed,
    Found,
    GetChildren,
    GetData,
    Lost,
    Result,
    SessionExpired,
    SessionSuspended,
    SetData,
    WatchEvent,
)
from support.wire.tcp_proxy import TcpProxy
from support.zookeeper.chroots import Chroot
from support.zookeeper.client import eventually

pytestmark = [pytest.mark.java, pytest.mark.slow]

NAMES = [f"n{number}" for number in range(12)]


class Mirror:
    """What the nodes hold, kept up to date by re-reading what a watch names, as a controller would."""

    def __init__(self) -> None:
        self.client: ZooKeeperClient | None = None
        self.data: dict[str, bytes | None] = {}
        self.children: tuple[str, ...] = ()
        self.suspensions = 0
        self.expiries = 0

    def listen(self, event: Notification) -> None:
        if isinstance(event, WatchEvent):
            if event.path == "/":
                self._read_children()
            else:
                self._read(event.path)
        self.suspensions += isinstance(event, SessionSuspended)
        self.expiries += isinstance(event, SessionExpired)

    def begin(self, client: ZooKeeperClient) -> None:
        self.client = client
        self._read_children()
        for name in NAMES:
            self._read(f"/{name}")

    def _read_children(self) -> None:
        assert self.client is not None
        self.client.submit_then(GetChildren("/", watch=True), self._got_children)

    def _got_children(self, result: Result) -> None:
        if isinstance(result, Children):
            self.children = tuple(sorted(result.names))

    def _read(self, path: str) -> None:
        """Exists arms the watch whether or not the node is there; the data follow."""
        assert self.client is not None
        self.client.submit_then(Exists(path, watch=True), partial(self._found, path))

    def _found(self, path: str, result: Result) -> None:
        assert self.client is not None
        if isinstance(result, Found):
            self.client.submit_then(GetData(path), partial(self._got, path))
        elif isinstance(result, Failed):
            self.data.pop(path, None)

    def _got(self, path: str, result: Result) -> None:
        if isinstance(result, Data):
            self.data[path] = result.data
        elif isinstance(result, Failed):
            self.data.pop(path, None)


def change_something(other: BlockingZooKeeper, rng: random.Random, number: int) -> None:
    path = f"/{rng.choice(NAMES)}"
    data = b"%d" % number
    match rng.randrange(3):
        case 0:
            other.run(Create(path, data))
        case 1:
            other.run(SetData(path, data, ANY_VERSION))
        case _:
            other.run(Delete(path, ANY_VERSION))


def cut_somehow(proxy: TcpProxy, rng: random.Random) -> None:
    if rng.random() < 0.7:
        proxy.cut_after(rng.randrange(1, 400))
    else:
        proxy.cut()


@pytest.mark.parametrize("seed", range(2))
def test_a_mirror_kept_by_watches_is_right_after_any_number_of_cuts(
    proxy: TcpProxy, zookeeper: Chroot, seed: int, long_form: bool
) -> None:
    rng = random.Random(seed)
    changes = 5_000 if long_form else 400

    async def scenario(other: BlockingZooKeeper) -> None:
        mirror = Mirror()
        client = await ZooKeeperClient.connect(
            proxy.address + zookeeper.chroot, session_timeout_ms=20_000, listener=mirror.listen
        )
        mirror.begin(client)
        for number in range(20 * changes):
            if number >= changes and mirror.suspensions > changes // 100:
                break  # a busy machine merges cuts: there have been enough of them all the same
            await asyncio.to_thread(change_something, other, rng, number)
            if rng.random() < 0.15:
                cut_somehow(proxy, rng)
        proxy.heal()

        def is_right() -> bool:
            assert mirror.expiries == 0, "the machine stood still, and the session ended"
            children = other.children("/")
            truth = {f"/{name}": other.get(f"/{name}").data for name in children}
            return mirror.data == truth and mirror.children == tuple(children)

        try:
            await eventually(is_right, "the mirror is right")
            assert mirror.suspensions > changes // 100, "hardly any cut met the connection"
        finally:
            await client.close()

    with BlockingZooKeeper(zookeeper.connect) as other:
        asyncio.run(scenario(other))


def test_every_write_under_cuts_ends_once_and_only_lost_ones_are_in_doubt(
    proxy: TcpProxy, zookeeper: Chroot
) -> None:
    """ZP1: what was answered is so; what was lost is either so or not."""
    rng = random.Random(7)

    async def scenario() -> None:
        client = await ZooKeeperClient.connect(proxy.address + zookeeper.chroot, session_timeout_ms=20_000)
        outcomes: dict[int, Result] = {}
        for number in range(600):
            client.submit_then(Create(f"/w{number}"), partial(outcomes.__setitem__, number))
            if number % 20 == 0:
                proxy.cut_after(rng.randrange(1, 1_500))
                await asyncio.sleep(0.005)
        proxy.heal()
        await eventually(lambda: len(outcomes) == 600, "every write ends")
        there = await client.submit(GetChildren("/"))
        await client.close()

        assert isinstance(there, Children)
        made = {int(name[1:]) for name in there.names}
        in_doubt = {number for number, outcome in outcomes.items() if outcome == Lost(True)}
        not_done = {number for number, outcome in outcomes.items() if outcome == Lost(False)}
        done = outcomes.keys() - in_doubt - not_done
        assert in_doubt, "the cuts met some writes"
        assert done <= made
        assert not made & not_done
        assert made <= done | in_doubt

    asyncio.run(scenario())
