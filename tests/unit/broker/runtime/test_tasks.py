"""Tasks: steps get what they waited for, take turns, fail to their owner, and end when they are cancelled."""

from collections.abc import Callable
from typing import Any

import pytest

from ottla.broker.outputs import Output, SubmitToZooKeeper
from ottla.broker.runtime.tasks import (
    BREATH,
    SLICE_MS,
    Answer,
    Pause,
    Steps,
    TaskGroup,
    TaskQueue,
    Tasks,
    Together,
    persistently,
)
from ottla.broker.runtime.timers import Timers
from ottla.broker.runtime.zookeeper import ZooKeeper
from ottla.zookeeper.ops import Create, Deleted, Failed, GetData, Lost, ZkCode
from support.bench.node_bench import HandClock

NO_NODE = Failed(ZkCode.NO_NODE)


class Bench:
    """A scheduler whose time and ZooKeeper are in the test's hand. It is the owner of the tasks, too."""

    def __init__(self) -> None:
        self.clock = HandClock()
        self.timers = Timers(self.clock)
        self.outputs: list[Output] = []
        self.zk = ZooKeeper(self.outputs)
        self.zk.connected(5)
        self.tasks = Tasks(self.clock, self.timers, self.zk)
        self.results: list[Any] = []
        self.failures: list[Exception] = []

    def task_failed(self, error: Exception) -> None:
        self.failures.append(error)

    def tokens(self) -> list[int]:
        return [output.token for output in self.outputs if isinstance(output, SubmitToZooKeeper)]

    def answer(self, result: Any) -> None:
        self.zk.on_result(self.tokens()[-1], result)

    def wait(self, ms: int) -> None:
        self.clock.now_ms += ms
        self.timers.run_due()


def counting(bench: Bench, count: int, cost_ms: int, done: list[int]) -> Steps[None]:
    """Each step takes so long."""
    for number in range(count):
        bench.clock.now_ms += cost_ms
        done.append(number)
        yield BREATH


def test_steps_get_each_result_and_end_with_what_they_return() -> None:
    bench = Bench()

    def steps() -> Steps[str]:
        first = yield Create("/a")
        yield Pause(50)
        second = yield GetData("/b")
        return f"{type(first).__name__} {type(second).__name__}"

    bench.tasks.spawn(steps(), bench, bench.results.append)
    bench.answer(Deleted())
    assert len(bench.tokens()) == 1
    bench.wait(50)
    bench.answer(NO_NODE)

    assert bench.results == ["Deleted Failed"]


def test_operations_at_once_give_their_results_in_order() -> None:
    bench = Bench()

    def steps() -> Steps[list[Any]]:
        nothing = yield Together([])
        return [nothing, (yield Together([Create("/a"), Create("/b")]))]

    bench.tasks.spawn(steps(), bench, bench.results.append)
    bench.wait(0)
    first, second = bench.tokens()
    bench.zk.on_result(second, NO_NODE)
    bench.zk.on_result(first, Deleted())

    assert bench.results == [[[], [Deleted(), NO_NODE]]]


def test_an_answer_may_come_at_once_or_later() -> None:
    bench = Bench()
    later: list[Callable[[Any], None]] = []

    def steps() -> Steps[list[int]]:
        return [(yield Answer(lambda then: then(1))), (yield Answer(later.append))]

    bench.tasks.spawn(steps(), bench, bench.results.append)
    later[0](2)

    assert bench.results == [[1, 2]]


def test_persistent_steps_repeat_until_there_is_a_result() -> None:
    bench = Bench()
    bench.tasks.spawn(persistently(Create("/a")), bench, bench.results.append)

    bench.answer(Lost(maybe_applied=True))
    bench.wait(100)
    bench.answer(NO_NODE)

    assert bench.results == [NO_NODE]


def test_a_task_lets_others_have_their_turn_when_its_slice_is_used_up() -> None:
    bench = Bench()
    done: list[int] = []

    bench.tasks.spawn(counting(bench, 10, SLICE_MS // 4, done), bench)
    assert len(done) == 4
    bench.wait(0)

    assert len(done) == 8


def test_little_work_is_done_at_once() -> None:
    bench = Bench()
    done: list[int] = []

    bench.tasks.spawn(counting(bench, 1_000, 0, done), bench, bench.results.append)

    assert (len(done), bench.results) == (1_000, [None])


def test_the_owner_hears_of_a_failure_and_so_does_the_edge() -> None:
    bench = Bench()

    def steps() -> Steps[None]:
        yield GetData("/a")
        raise ValueError("a mistake")

    task = bench.tasks.spawn(steps(), bench)
    with pytest.raises(ValueError, match="a mistake"):
        bench.answer(NO_NODE)

    assert [str(error) for error in bench.failures] == ["a mistake"]
    assert task.is_over


def test_a_failure_of_what_follows_a_task_is_a_failure_of_the_task() -> None:
    bench = Bench()

    def fail(_: None) -> None:
        raise ValueError("a mistake")

    with pytest.raises(ValueError, match="a mistake"):
        bench.tasks.spawn(counting(bench, 1, 0, []), bench, fail)

    assert len(bench.failures) == 1


def test_a_cancelled_task_is_closed_at_once_and_ignores_what_it_waited_for() -> None:
    bench = Bench()

    def steps() -> Steps[None]:
        try:
            yield GetData("/a")
            bench.results.append("went on")
        finally:
            bench.results.append("closed")

    bench.tasks.spawn(steps(), bench).cancel()
    assert bench.results == ["closed"]
    bench.answer(NO_NODE)

    assert bench.results == ["closed"]


def test_a_group_that_is_cancelled_by_its_own_task_goes_no_further() -> None:
    bench = Bench()
    group = TaskGroup(bench.tasks)

    def steps() -> Steps[None]:
        yield Pause(1)
        group.cancel()
        yield Pause(1)
        bench.results.append("went on")

    group.spawn(steps())
    group.spawn(counting(bench, 3, SLICE_MS, done := []))
    for _ in range(5):
        bench.wait(1)
    group.spawn(counting(bench, 1, 0, done))

    assert bench.results == []
    assert done == [0]


def test_a_queue_begins_the_next_task_when_the_one_before_is_over_however_it_ended() -> None:
    bench = Bench()
    queue = TaskQueue(bench.tasks, bench.timers)
    first: list[int] = []
    third: list[int] = []

    def failing() -> Steps[None]:
        yield BREATH
        raise ValueError("a mistake")

    queue.put(counting(bench, 2, SLICE_MS, first), bench)
    queue.put(failing(), bench)
    queue.put(counting(bench, 1, 0, third), bench)
    bench.wait(0)
    bench.wait(0)
    assert (first, third) == ([0, 1], [])
    with pytest.raises(ValueError, match="a mistake"):
        bench.wait(0)
    bench.wait(0)

    assert third == [0]
    assert queue.is_empty


def test_a_queue_that_is_cleared_drops_what_is_under_way() -> None:
    bench = Bench()
    queue = TaskQueue(bench.tasks, bench.timers)
    done: list[int] = []
    queue.put(counting(bench, 3, SLICE_MS, done), bench)
    queue.put(counting(bench, 3, SLICE_MS, done), bench)

    queue.clear()
    bench.wait(0)

    assert done == [0]
    assert queue.is_empty
