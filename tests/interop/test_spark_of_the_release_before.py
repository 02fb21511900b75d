"""Spark's tests once more, with the release of pyspark before the locked one: Ottla supports both."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from support.processes.lab import ROOT, _run, built_once, lab_dir

pytestmark = [pytest.mark.long, pytest.mark.slow, pytest.mark.java]

OLDER = "4.2.1"
INSTALL_SECONDS_MAX = 900
SECONDS_MAX = 1800
COUNT_MIN = 140
"""Fewer tests than that would be a part of them."""

LEFT_OUT = ("test_faults.py", "test_killed_queries.py")
"""They are about the cluster and the checkpoint, and take as long as all the others."""


def older_pyspark() -> Path:
    """A directory with that pyspark alone; all else comes from this environment."""

    def install(target: Path) -> None:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
        wanted = f"pyspark=={OLDER}"
        _run([*pip, "--target", str(target), wanted], INSTALL_SECONDS_MAX, f"pip install {wanted}")

    return built_once(lab_dir() / f"pyspark-{OLDER}", install)


def run_with(pyspark: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**kept, "PYTHONPATH": os.pathsep.join([str(pyspark), str(ROOT / "src")])},
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )


def test_all_of_spark_holds_with_the_release_before() -> None:
    assert version("pyspark") != OLDER, "the locked release is another"
    older = older_pyspark()
    seen = run_with(older, "-c", "import pyspark; print(pyspark.__version__, pyspark.__file__)")
    assert seen.stdout.split() == [OLDER, str(older / "pyspark" / "__init__.py")], seen.stderr

    ignored = [f"--ignore=tests/spark/{name}" for name in LEFT_OUT]
    done = run_with(older, "-m", "pytest", "-p", "no:cacheprovider", "tests/spark", *ignored)

    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None
    assert int(passed[1]) >= COUNT_MIN
    assert "skipped" not in done.stdout.splitlines()[-1]
