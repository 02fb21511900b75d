"""ZooKeeper operations: who waits for what, what is asked again and what is not."""

from typing import Any

import pytest

from ottla.broker.outputs import Output, SubmitToZooKeeper
from ottla.broker.runtime.zookeeper import ZooKeeper
from ottla.zookeeper.ops import Create, Failed, GetData, Lost, WatchEvent, WatchKind, ZkCode

NO_NODE = Failed(ZkCode.NO_NODE)


class Bench:
    def __init__(self) -> None:
        self.outputs: list[Output] = []
        self.zk = ZooKeeper(self.outputs)
        self.zk.connected(5)
        self.results: list[Any] = []

    def tokens(self) -> list[int]:
        return [output.token for output in self.outputs if isinstance(output, SubmitToZooKeeper)]

    def answer(self, result: Any) -> None:
        self.zk.on_result(self.tokens()[-1], result)


def test_a_lost_read_is_asked_again() -> None:
    bench = Bench()
    bench.zk.submit(GetData("/a"), bench.results.append)

    bench.answer(Lost(maybe_applied=True))
    assert bench.results == []
    bench.answer(NO_NODE)

    assert bench.results == [NO_NODE]
    assert len(bench.tokens()) == 2


def test_a_write_that_may_have_been_applied_comes_back_as_lost() -> None:
    bench = Bench()
    bench.zk.submit(Create("/a"), bench.results.append)

    bench.answer(Lost(maybe_applied=True))

    assert bench.results == [Lost(maybe_applied=True)]


def test_what_was_surely_not_applied_waits_for_the_connection() -> None:
    bench = Bench()
    bench.zk.submit(Create("/a"), bench.results.append)
    bench.zk.suspended()
    bench.answer(Lost(maybe_applied=False))
    assert len(bench.tokens()) == 1

    bench.zk.connected(5)

    assert len(bench.tokens()) == 2
    assert bench.results == []


def test_nothing_is_asked_again_across_the_end_of_a_session() -> None:
    bench = Bench()
    bench.zk.submit(GetData("/a"), bench.results.append)
    bench.zk.submit(GetData("/b"), bench.results.append)
    bench.zk.suspended()
    bench.zk.on_result(1, Lost(maybe_applied=True))

    bench.zk.expired()
    bench.zk.on_result(2, Lost(maybe_applied=True))
    bench.zk.connected(6)

    assert bench.results == [Lost(maybe_applied=False), Lost(maybe_applied=True)]
    assert len(bench.tokens()) == 2


def test_watch_events_reach_those_who_registered_for_the_path() -> None:
    bench = Bench()
    event = WatchEvent(WatchKind.DATA_CHANGED, "/a")
    bench.zk.watch("/a", bench.results.append)
    bench.zk.watch("/b", bench.results.append)

    bench.zk.on_watch(event)
    assert bench.results == [event]


def test_an_unregistered_handler_hears_nothing() -> None:
    bench = Bench()
    handler = bench.results.append
    bench.zk.watch("/a", handler)

    bench.zk.unwatch("/a", handler)
    bench.zk.unwatch("/a", handler)
    bench.zk.on_watch(WatchEvent(WatchKind.DELETED, "/a"))

    assert bench.results == []


def test_a_mistake_of_one_who_waits_does_not_take_the_others_along() -> None:
    bench = Bench()

    def fail(_: Any) -> None:
        raise ValueError("this one is wrong")

    bench.zk.submit(GetData("/a"), fail)
    bench.zk.submit(GetData("/b"), bench.results.append)
    bench.zk.watch("/c", fail)
    bench.zk.watch("/c", bench.results.append)
    bench.zk.suspended()
    for token in bench.tokens():
        bench.zk.on_result(token, Lost(maybe_applied=True))
    fired = WatchEvent(WatchKind.DATA_CHANGED, "/c")

    with pytest.raises(ValueError, match="this one is wrong"):
        bench.zk.on_watch(fired)
    with pytest.raises(ValueError, match="this one is wrong"):
        bench.zk.expired()

    assert bench.results == [fired, Lost(maybe_applied=False)]
