"""A failing plan is reduced to what it takes to fail, and only to plans that fail alike."""

from __future__ import annotations

from dataclasses import replace

from ottla.sim.plan import Plan, Shape, Strike
from ottla.sim.run import plan_of
from ottla.sim.shrink import Shrinker, kind_of, without
from ottla.sim.world import SECOND


def a_plan(count: int = 20, seconds: int = 60, brokers: int = 5) -> Plan:
    strikes = tuple(Strike(n, n * 2 * SECOND, "kill", n) for n in range(1, count + 1))
    shape = Shape(brokers=brokers, members=3, churns=True, directories=2)
    return Plan(1, seconds, shape, strikes)


def shrunk(plan: Plan, needed: set[int], failure: str = "Violation: lost: x", brokers: int = 3) -> Shrinker:
    def fails(smaller: Plan) -> str | None:
        numbers = {strike.number for strike in smaller.strikes}
        if not needed <= numbers or smaller.shape.brokers < brokers:
            return None
        return failure if smaller.shape.members else "Violation: stuck: something else"

    shrinker = Shrinker(plan, failure, fails, lambda line: None)
    shrinker.shrink()
    return shrinker


def test_only_the_needed_faults_and_the_needed_time_remain() -> None:
    small = shrunk(a_plan(), {3, 7}).plan

    assert [strike.number for strike in small.strikes] == [3, 7]
    assert small.seconds == 15
    assert small.shape.brokers == 3


def test_brokers_stay_if_it_takes_them() -> None:
    assert shrunk(a_plan(), {3}, brokers=5).plan.shape.brokers == 5


def test_the_workload_is_reduced_but_not_what_makes_it_fail_in_this_way() -> None:
    shrinker = shrunk(a_plan(), {3})

    assert shrinker.plan.shape.members == 3
    assert not shrinker.plan.shape.churns
    assert shrinker.left_out == ["churn", "directories"]


def test_a_failure_without_any_fault_keeps_none() -> None:
    assert shrunk(a_plan(), set()).plan.strikes == ()


def test_failures_are_alike_by_their_first_words_not_by_their_particulars() -> None:
    assert kind_of("Violation: lost: b'a/1' was") == kind_of("Violation: lost: b'b/2' was")
    assert kind_of("Violation: lost: b'a/1' was") != kind_of("Violation: duplicate: b'a/1'")
    assert kind_of("KeyError: 3 in a.py:1") != kind_of("Violation: lost: b'a/1'")


def test_a_plan_is_the_same_each_time_and_its_parts_can_be_chosen() -> None:
    plan = plan_of(7)

    assert plan == plan_of(7)
    assert plan != plan_of(8)
    assert plan.keeping((2, 4)).strikes == (plan.strikes[1], plan.strikes[3])
    assert all(strike.at_us < 9 * SECOND for strike in plan.shorter(9).strikes)
    assert without(plan, ("group",)).shape == replace(plan.shape, members=0)


def test_every_minute_has_enough_faults() -> None:
    assert min(len(plan_of(seed).strikes) for seed in range(200)) >= 14
