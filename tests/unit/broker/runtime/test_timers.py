"""Timers: the right order, once, and never after they were cancelled."""

import pytest

from ottla.broker.runtime.timers import Timers
from support.bench.node_bench import HandClock


def test_timers_run_in_the_order_of_their_deadlines_then_of_their_making() -> None:
    clock = HandClock()
    timers = Timers(clock)
    ran: list[str] = []
    for name, delay_ms in (("late", 20), ("first", 10), ("second", 10)):
        timers.after(delay_ms, lambda name=name: ran.append(name))  # type: ignore[misc]

    clock.now_ms += 20
    timers.run_due()

    assert ran == ["first", "second", "late"]


def test_a_timer_runs_once_and_not_before_its_time() -> None:
    clock = HandClock()
    timers = Timers(clock)
    ran: list[int] = []
    timer = timers.after(10, lambda: ran.append(1))

    clock.now_ms += 9
    timers.run_due()
    assert ran == []
    assert timer.is_pending

    clock.now_ms += 1
    timers.run_due()
    timers.run_due()
    assert ran == [1]
    assert not timer.is_pending


def test_a_cancelled_timer_neither_runs_nor_wakes_the_edge() -> None:
    clock = HandClock()
    timers = Timers(clock)
    ran: list[int] = []
    timers.after(10, lambda: ran.append(1)).cancel()
    kept = timers.after(30, lambda: ran.append(2))

    assert timers.next_deadline_ms() == kept.deadline_ms
    clock.now_ms += 40
    timers.run_due()

    assert ran == [2]
    assert timers.next_deadline_ms() is None


def test_what_a_timer_starts_without_delay_waits_for_the_next_tick() -> None:
    clock = HandClock()
    timers = Timers(clock)
    ran: list[str] = []

    def again() -> None:
        ran.append("turn")
        timers.after(0, again)

    timers.after(0, again)
    timers.run_due()
    assert ran == ["turn"]

    timers.run_due()
    assert ran == ["turn", "turn"]


def test_a_timer_that_raises_does_not_take_the_others_along() -> None:
    clock = HandClock()
    timers = Timers(clock)
    ran: list[str] = []
    timers.after(5, lambda: ran.append(str(1 // 0)))
    timers.after(5, lambda: ran.append("second"))
    clock.now_ms += 5

    with pytest.raises(ZeroDivisionError):
        timers.run_due()
    timers.run_due()

    assert ran == ["second"]


def test_a_timer_cancelled_by_one_that_is_due_with_it_does_not_run() -> None:
    clock = HandClock()
    timers = Timers(clock)
    ran: list[str] = []
    timers.after(5, lambda: victim.cancel())
    victim = timers.after(5, lambda: ran.append("victim"))

    clock.now_ms += 5
    timers.run_due()

    assert ran == []
