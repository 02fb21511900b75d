"""Many seeds in one run: what is printed when somebody ends it early."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Iterator

import pytest
import typer

from ottla.cli import sim_report
from ottla.sim.run import Outcome


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

    monkeypatch.setattr(sim_report, "outcomes_of", outcomes)
    with pytest.raises(typer.Exit) as ended:
        sim_report.play_many(7, 100, 1, 60)

    assert ended.value.exit_code == 130
    assert played == [7, 8, 9]
    assert "3 of 3 seeds kept every promise" in capsys.readouterr().out
