"""The desk: who waits for what, what is asked again and what is not."""

from typing import Any

import pytest

from ottla.broker.outputs import Output, SubmitToZooKeeper
from ottla.broker.timers import Timers
from ottla.broker.zk_desk import Pause, Steps, ZkDesk, persistently
from ottla.zookeeper.ops import Create, Deleted, Failed, GetData, Lost, WatchEvent, WatchKind, ZkCode
from support.node_bench import HandClock

NO_NODE = Failed(ZkCode.NO_NODE)


class DeskBench:
    def __init__(self) -> None:
        self.clock = HandClock()
        self.timers = Timers(self.clock)
        self.outputs: list[Output] = []
        self.desk = ZkDesk(self.outputs, self.timers)
        self.desk.connected(5)
        self.results: list[Any] = []

    def tokens(self) -> list[int]:
        return [output.token for output in self.outputs if isinstance(output, SubmitToZooKeeper)]

    def answer(self, result: Any) -> None:
        self.desk.on_result(self.tokens()[-1], result)


def test_a_lost_read_is_asked_again() -> None:
    bench = DeskBench()
    bench.desk.submit(GetData("/a"), bench.results.append)

    bench.answer(Lost(maybe_applied=True))
    assert bench.results == []
    bench.answer(NO_NODE)

    assert bench.results == [NO_NODE]
    assert len(bench.tokens()) == 2


def test_a_write_that_may_have_been_applied_comes_back_as_lost() -> None:
    bench = DeskBench()
    bench.desk.submit(Create("/a"), bench.results.append)

    bench.answer(Lost(maybe_applied=True))

    assert bench.results == [Lost(maybe_applied=True)]


def test_what_was_surely_not_applied_waits_for_the_connection() -> None:
    bench = DeskBench()
    bench.desk.submit(Create("/a"), bench.results.append)
    bench.desk.suspended()
    bench.answer(Lost(maybe_applied=False))
    assert len(bench.tokens()) == 1

    bench.desk.connected(5)

    assert len(bench.tokens()) == 2
    assert bench.results == []


def test_nothing_is_asked_again_across_the_end_of_a_session() -> None:
    bench = DeskBench()
    bench.desk.submit(GetData("/a"), bench.results.append)
    bench.desk.submit(GetData("/b"), bench.results.append)
    bench.desk.suspended()
    bench.desk.on_result(1, Lost(maybe_applied=True))

    bench.desk.expired()
    bench.desk.on_result(2, Lost(maybe_applied=True))
    bench.desk.connected(6)

    assert bench.results == [Lost(maybe_applied=False), Lost(maybe_applied=True)]
    assert len(bench.tokens()) == 2


def test_steps_get_each_result_and_end_with_what_they_return() -> None:
    bench = DeskBench()

    def steps() -> Steps[str]:
        first = yield Create("/a")
        yield Pause(50)
        second = yield GetData("/b")
        return f"{type(first).__name__} {type(second).__name__}"

    bench.desk.run(steps(), bench.results.append)
    bench.answer(Deleted())
    assert len(bench.tokens()) == 1
    bench.clock.now_ms += 50
    bench.timers.run_due()
    bench.answer(NO_NODE)

    assert bench.results == ["Deleted Failed"]


def test_persistent_steps_repeat_until_there_is_a_result() -> None:
    bench = DeskBench()
    bench.desk.run(persistently(Create("/a")), bench.results.append)

    bench.answer(Lost(maybe_applied=True))
    bench.clock.now_ms += 100
    bench.timers.run_due()
    bench.answer(NO_NODE)

    assert bench.results == [NO_NODE]


def test_watch_events_reach_those_who_registered_for_the_path() -> None:
    bench = DeskBench()
    event = WatchEvent(WatchKind.DATA_CHANGED, "/a")
    bench.desk.watch("/a", bench.results.append)
    bench.desk.watch("/b", bench.results.append)

    bench.desk.on_watch(event)
    assert bench.results == [event]


def test_an_unregistered_handler_hears_nothing() -> None:
    bench = DeskBench()
    handler = bench.results.append
    bench.desk.watch("/a", handler)

    bench.desk.unwatch("/a", handler)
    bench.desk.unwatch("/a", handler)
    bench.desk.on_watch(WatchEvent(WatchKind.DELETED, "/a"))

    assert bench.results == []


def test_a_mistake_of_one_who_waits_does_not_take_the_others_along() -> None:
    bench = DeskBench()

    def fail(_: Any) -> None:
        raise ValueError("this one is wrong")

    bench.desk.submit(GetData("/a"), fail)
    bench.desk.submit(GetData("/b"), bench.results.append)
    bench.desk.watch("/c", fail)
    bench.desk.watch("/c", bench.results.append)
    bench.desk.suspended()
    for token in bench.tokens():
        bench.desk.on_result(token, Lost(maybe_applied=True))
    fired = WatchEvent(WatchKind.DATA_CHANGED, "/c")

    with pytest.raises(ValueError, match="this one is wrong"):
        bench.desk.on_watch(fired)
    with pytest.raises(ValueError, match="this one is wrong"):
        bench.desk.expired()

    assert bench.results == [fired, Lost(maybe_applied=False)]
