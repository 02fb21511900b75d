"""README and the first steps, typed from top to bottom: what comes out is what they show."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.documented import commands_of, missing

pytestmark = [pytest.mark.java, pytest.mark.slow]

SECONDS_MAX = 90


@pytest.mark.parametrize("name", ["README.md", "docs/start.md"])
def test_what_the_page_shows_is_what_comes_out(name: str, repository: Path, tmp_path: Path) -> None:
    typed = commands_of(repository / name)
    assert len(typed) > 5, "the page shows commands"
    bin_directory = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{bin_directory}{os.pathsep}{os.environ['PATH']}"}
    environment.pop("OTTLA_BOOTSTRAP_SERVER", None)
    wrong = {}
    try:
        for step in typed:
            # The usual ports may be another's here; all else is as the page has it.
            command = step.command.replace("ottla up --detach", "ottla up --detach --port 0")
            ran = subprocess.run(
                ["bash", "-o", "pipefail", "-c", command],
                cwd=tmp_path,
                env=environment,
                capture_output=True,
                text=True,
                timeout=SECONDS_MAX,
                check=False,
            )
            absent = missing(step.shown, ran.stdout)
            if ran.returncode or absent:
                wrong[step.command] = (ran.returncode, absent, ran.stdout, ran.stderr)
    finally:
        down = [sys.executable, "-m", "ottla.cli.main", "down"]
        subprocess.run(down, cwd=tmp_path, capture_output=True, timeout=SECONDS_MAX, check=False)

    assert wrong == {}
