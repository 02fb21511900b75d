"""The keeper and Apache's server get the same random requests; answers, events and zxids must agree."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ottla.launch.embedded_zookeeper import EmbeddedZooKeeper
from support.running.waiting import wait_until
from support.zookeeper.keeper import LIKE_THE_EMBEDDED, KeeperProcess
from support.zookeeper.pair import SUPER_DIGEST, Pair, Side
from support.zookeeper.random_requests import Requests
from support.zookeeper.raw import (
    CREATE,
    EXISTS,
    GET_CHILDREN_2,
    GET_DATA,
    RECONFIG,
    RawClient,
    SocketWire,
    create,
    integer,
    long,
    text,
)

CLIENTS = 3
STEPS = 200
EXPIRES_EVERY = 10
"""In one of so many histories a session times out, which takes a second."""
LIVES = 4
NEVER_MS = 10**8
"""Containers are removed by a clock, and that takes a zxid."""
PROPERTIES = {
    "zookeeper.extendedTypesEnabled": "true",
    "znode.container.checkIntervalMs": str(NEVER_MS),
    "zookeeper.DigestAuthenticationProvider.superDigest": SUPER_DIGEST,
}
OPTIONS = (*LIKE_THE_EMBEDDED, "--super-digest", SUPER_DIGEST, "--container-check-ms", str(NEVER_MS))


@pytest.fixture(scope="module")
def apache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedZooKeeper]:
    """A server that nobody else uses: its zxids are compared."""
    place = tmp_path_factory.mktemp("apache")
    with EmbeddedZooKeeper(place, sync=False, properties=PROPERTIES) as server:
        yield server


@pytest.fixture(scope="module")
def keeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeeperProcess]:
    place = tmp_path_factory.mktemp("keeper") / "data"
    with KeeperProcess(place, *OPTIONS) as process:
        yield process


@pytest.fixture
def pair(apache: EmbeddedZooKeeper, keeper: KeeperProcess) -> Iterator[Pair]:
    both = Pair(partial(SocketWire, apache.port), partial(SocketWire, keeper.port))
    yield both
    both.close()


class Play:
    """Sessions come, go and change their connection in the midst of requests; one of three is logged in."""

    def __init__(self, pair: Pair, seed: int) -> None:
        self.pair = pair
        self.requests = Requests(seed)
        self.last = 0
        self.zxid = 0

    def steps(self, count: int) -> None:
        for _ in range(count):
            self._step()

    def _step(self) -> None:
        pair, chance = self.pair, self.requests.chance
        numbers = sorted(pair.sides[0].clients)
        if len(numbers) < CLIENTS:
            self.last += 1
            pair.same(Side.open, self.last)
            if self.last % CLIENTS == 0:
                pair.same(Side.log_in, self.last, "digest", b"ann:secret")
            return
        number, kind = chance.choice(numbers), chance.random()
        if kind < 0.02:
            pair.same(Side.end, number)
        elif kind < 0.04:
            self.resume(number)
        else:
            answer, _ = pair.same(Side.ask, number, *self.requests.next())
            self.zxid = max(self.zxid, answer[1])

    def resume(self, number: int) -> None:
        """Over another connection; some watches are named again."""
        granted, _ = self.pair.same(Side.resume, number, self.zxid)
        assert granted
        since = max(0, self.zxid - self.requests.chance.randrange(20))
        paths = b"".join(self.requests.some_paths() for _ in range(5))
        self.pair.same(Side.watch_again, number, since, paths)

    def expire(self) -> None:
        """One session is silent until it is over, and takes its nodes along."""
        number = self.requests.chance.choice(sorted(self.pair.sides[0].clients))
        (granted, _), _ = self.pair.same(Side.expire, number, self.zxid)
        assert granted

    def end(self) -> None:
        for number in sorted(self.pair.sides[0].clients):
            self.pair.same(Side.end, number)


@pytest.mark.parametrize("seed", [*range(10), 1250])
def test_the_same_requests_get_the_same_answers_and_events(
    pair: Pair, seed: int, full_form: bool, long_form: bool
) -> None:
    rounds = 1_000 if long_form else 20 if full_form else 1
    for number in range(rounds):
        play = Play(pair, seed + 10 * number)
        play.steps(STEPS // 2)
        if (seed + number) % EXPIRES_EVERY == 0:
            play.expire()
        play.steps(STEPS // 2)
        play.end()


def test_both_go_on_alike_after_they_were_started_again(tmp_path: Path, long_form: bool) -> None:
    for seed in range(7, 57 if long_form else 8):
        lives(tmp_path / str(seed), seed, LIVES if long_form else LIVES // 2)


def lives(place: Path, seed: int, count: int) -> None:
    """Both are killed and started again, and sessions go on with their nodes, or time out."""
    apache = EmbeddedZooKeeper(place / "apache", sync=False, properties=PROPERTIES)
    keeper = KeeperProcess(place / "keeper", *OPTIONS)
    with apache, keeper:
        pair = Pair(lambda: SocketWire(apache.port), lambda: SocketWire(keeper.port))
        play = Play(pair, seed)
        for _ in range(count):
            play.steps(STEPS)
            apache.kill()
            apache.launch()  # to wait for a session would take zxids
            keeper.kill()
            keeper.start()
            wait_until(lambda: apache.mode() == "standalone", "Apache's server serves again")
            for number in sorted(pair.sides[0].clients):
                play.resume(number)
            play.expire()
        play.steps(STEPS)
        pair.close()


@pytest.mark.parametrize("asked_ms", [-1, 0, 500, 1_000, 5_000, 60_000, 10**9])
def test_the_time_out_of_a_session_is_negotiated_alike(pair: Pair, asked_ms: int) -> None:
    pair.same(Side.open, 1, timeout_ms=asked_ms)


def test_a_client_that_has_seen_more_is_hung_up_on(pair: Pair) -> None:
    granted, _ = pair.same(Side.open, 1, last_zxid=2**40)

    assert not granted


def test_a_session_is_not_given_to_whoever_has_another_password(pair: Pair) -> None:
    pair.same(Side.open, 1)

    def steal(side: Side) -> bool:
        return RawClient(side.wire(), session=side.clients[1].session, password=b"x" * 16).connect()

    assert not pair.same(steal)


def test_a_login_of_an_unknown_kind_ends_the_connection(pair: Pair) -> None:
    pair.same(Side.open, 1)

    pair.same(Side.log_in, 1, "kerberos", b"x")

    assert pair.same(Side.ask, 1, EXISTS, text("/") + b"\0")[0] == "hung up"


@pytest.mark.parametrize("op", [13, 77, 1000, -1, RECONFIG])
def test_a_kind_of_request_that_is_not_served_is_refused_alike(pair: Pair, op: int) -> None:
    pair.same(Side.open, 1)

    answer = pair.same(Side.ask, 1, op, integer(-1) * 3 + long(-1))

    assert answer[0][0] == (-123 if op == RECONFIG else -6)


def test_an_expired_session_takes_its_nodes_along(pair: Pair) -> None:
    pair.same(Side.open, 1, timeout_ms=1_000)
    pair.same(Side.open, 2)
    pair.same(Side.ask, 1, CREATE, create("/mine", flags=1))
    pair.same(Side.ask, 2, GET_CHILDREN_2, text("/") + b"\1")
    pair.same(Side.ask, 2, GET_DATA, text("/mine") + b"\1")

    def be_silent(side: Side) -> Any:
        client = side.clients.pop(1)
        assert client.wire.frame() is None, "nothing but the end comes to a client that is silent"
        while len(side.clients[2].events) < 2:
            side.clients[2].ping()
        client.wire = side.wire()
        return side.heard(), client.connect()

    events, is_granted = pair.same(be_silent)
    assert len(events[0]) == 2
    assert not is_granted
