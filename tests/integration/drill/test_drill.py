"""The story people are told is true: the drill runs to its end and finds nothing wrong."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow


def test_the_drill_ends_well() -> None:
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
