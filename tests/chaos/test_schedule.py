"""The faults of a run come from its seed alone, and every kind has its turn."""

from __future__ import annotations

from random import Random

from chaos.nemeses import ALONE, Fault
from chaos.options import parse
from chaos.schedule import Deck, Draw, play

KINDS = ["freeze", "kill -9", "link cut", "rolling restart", "disk full"]


def draws(seed: int, count: int) -> list[Draw]:
    deck = Deck(KINDS, Random(seed))
    return [deck.draw() for _ in range(count)]


def test_the_same_seed_draws_the_same_rounds() -> None:
    assert draws(7, 50) == draws(7, 50)
    assert draws(7, 50) != draws(8, 50)


def test_every_kind_has_its_turn_before_any_comes_a_third_time() -> None:
    seen = [kind for draw in draws(3, 40) for kind in draw.kinds]

    assert set(seen) == set(KINDS)
    assert min(seen.count(kind) for kind in KINDS) >= max(seen.count(kind) for kind in KINDS) - 2


def test_what_must_come_alone_comes_alone() -> None:
    for draw in draws(5, 200):
        assert len(draw.kinds) == 1 or not ALONE & set(draw.kinds)
        assert len(set(draw.kinds)) == len(draw.kinds)


def test_a_round_begins_and_undoes_every_fault_in_the_order_of_time() -> None:
    told: list[str] = []
    times = [100.0]

    def fault(name: str, after_s: float, hold_s: float) -> Fault:
        return Fault(
            name, name, lambda: told.append(f"+{name}"), lambda: told.append(f"-{name}"), hold_s, after_s
        )

    def sleep(seconds: float) -> None:
        times.append(times[-1] + seconds)

    play([fault("long", 0, 4), fault("short", 1, 1)], lambda: times[-1], sleep)

    assert told == ["+long", "+short", "-short", "-long"]
    assert times[1:] == [100, 101, 102, 104]


def test_options_have_the_lengths_the_documents_name() -> None:
    assert parse([]).seconds == 900
    assert parse(["--mixed"]).seconds == 480
    assert parse(["--soak"]).seconds == 1200
    assert parse(["--mixed"]).bound_s == 21
    assert parse(["--seed", "7", "--session-ms", "2000"]).bound_s == 7
