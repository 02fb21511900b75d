"""The story people are told is true: the drill runs to its end and finds nothing wrong."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support.running.documented import commands_of, missing

pytestmark = pytest.mark.slow


def test_the_drill_ends_well_and_prints_what_the_page_on_elections_shows(repository: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ottla.cli.main", "drill"],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "the cluster did what it should" in done.stdout
    assert done.stdout.count("ok: ") == 9
    shown = [typed.shown for typed in commands_of(repository / "docs" / "elections.md")]
    assert len(shown) == 3
    assert [missing(lines, done.stdout) for lines in shown] == [[]] * 3
