"""README and the first steps, typed from top to bottom: what comes out is what they show."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from support.running.documented import Typed, commands_of, missing
from support.running.waiting import wait_until

pytestmark = [pytest.mark.java, pytest.mark.slow]

SECONDS_MAX = 180
LOOKS = ("ottla describe", "ottla explain ", "ottla topics --describe ")
"""What they show is known to every broker, and written down, a moment after it was decided."""
UP = "ottla up --detach --port 0 --set auto.leader.rebalance.enable=false"
"""The usual ports may be another's here, and a slow machine gives the controller time to elect before the
reader does; all else is as the pages have it."""
LAGGING = "ottla topics --describe --under-replicated-partitions"


@pytest.mark.parametrize("name", ["README.md", "docs/start.md"])
def test_what_the_page_shows_is_what_comes_out(name: str, repository: Path, tmp_path: Path) -> None:
    typed = commands_of(repository / name)
    assert len(typed) > 5, "the page shows commands"
    bin_directory = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{bin_directory}{os.pathsep}{os.environ['PATH']}"}
    environment.pop("OTTLA_BOOTSTRAP_SERVER", None)
    wrong: dict[str, object] = {}

    def run(command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-o", "pipefail", "-c", command],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
            check=False,
        )

    def is_right(step: Typed) -> bool:
        ran = run(step.command.replace("ottla up --detach", UP))
        absent = missing(step.shown, ran.stdout)
        wrong.pop(step.command, None)
        if ran.returncode or absent:
            wrong[step.command] = (ran.returncode, absent, ran.stdout, ran.stderr)
        return step.command not in wrong

    try:
        for step in typed:
            if step.command.startswith(LOOKS):
                wait_until(partial(is_right, step), lambda: f"what the page shows: {wrong}", 30)
            else:
                is_right(step)
            if step.command.startswith("ottla restart "):
                wait_until(lambda: run(LAGGING).stdout == "", lambda: run(LAGGING).stdout, 60)
    finally:
        down = [sys.executable, "-m", "ottla.cli.main", "down"]
        subprocess.run(down, cwd=tmp_path, capture_output=True, timeout=SECONDS_MAX, check=False)

    assert wrong == {}
