"""Many seeds in one run: what is printed when somebody ends it early."""

from __future__ import annotations

import io
import os
import signal
import sys
from collections import Counter
from collections.abc import Iterator

import pytest
import typer

from ottla.cli.simulation import report
from ottla.sim.run import Outcome

WIPE = "\x1b[K"


def test_ctrl_c_ends_many_seeds_with_the_figures_so_far(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    played: list[int] = []

    def outcomes(work: list[tuple[int, int]], _jobs: int) -> Iterator[Outcome]:
        for seed, _ in work:
            played.append(seed)
            if len(played) == 3:
                os.kill(os.getpid(), signal.SIGINT)
            yield Outcome(seed, 60.0, 10, 5, 5, 1, Counter(), Counter(), "trace")

    monkeypatch.setattr(report, "outcomes_of", outcomes)
    with pytest.raises(typer.Exit) as ended:
        report.play_many(7, 100, 1, 60)

    assert ended.value.exit_code == 130
    assert played == [7, 8, 9]
    assert "3 of 3 seeds kept every promise" in capsys.readouterr().out


class Terminal(io.StringIO):
    """Takes text as a terminal does."""

    def isatty(self) -> bool:
        return True

    def lines(self) -> list[str]:
        """What stays to be seen: a carriage return begins the line anew, and what is wiped is gone."""
        seen = []
        for line in self.getvalue().split("\n"):
            shown = ""
            for part in line.split("\r"):
                shown = part.removeprefix(WIPE) if part.startswith(WIPE) else part + shown[len(part) :]
            seen.append(shown)
        return seen


def test_nothing_stays_of_the_progress_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    def outcomes(work: list[tuple[int, int]], _jobs: int) -> Iterator[Outcome]:
        for seed, _ in work:
            failure, story = ("a record was lost", ["broker 1 starts"]) if seed == 8 else (None, [])
            yield Outcome(
                seed, 60.0, 10, 5, 5, 1, Counter(), Counter(), "trace", failure=failure, story=story
            )

    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setattr(report, "outcomes_of", outcomes)

    assert report.play_many(7, 3, 1, 60)

    assert terminal.getvalue().count("/3 seeds, ") == 3
    assert terminal.lines()[:5] == [
        "seeds 7 to 9, 60 s of faults each",
        "broker 1 starts",
        "seed 8 FAILED: a record was lost",
        "  replay: ottla sim 8",
        "2 of 3 seeds kept every promise",
    ]
