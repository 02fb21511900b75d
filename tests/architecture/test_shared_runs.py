"""Tests that several processes share: a file is run by one of them, with the cluster that it starts."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.sharing import kept_together, place_in_line

FILES = ("tests/unit/client/test_engine.py", "tests/unit/client/test_partitioner.py")


@pytest.mark.slow
def test_each_file_is_run_by_one_process(repository: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    command = [sys.executable, "-m", "pytest", "-n", "2", "-vv", "-p", "no:cacheprovider", *FILES]

    done = subprocess.run(
        command, cwd=repository, env=environment, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout
    by_file: dict[str, set[str]] = {}
    for process, file in re.findall(r"^\[(gw\d)\].* PASSED (\S+?)::", done.stdout, re.MULTILINE):
        by_file.setdefault(file, set()).add(process)
    assert sorted(by_file) == sorted(FILES)
    assert {file: len(processes) for file, processes in by_file.items()} == dict.fromkeys(FILES, 1)


@pytest.mark.parametrize(
    ("nodeid", "group"),
    [
        ("tests/interop/test_lab.py::test_a[x-y]", "tests/interop/test_lab.py"),
        ("tests/spark/test_jobs.py::test_a", "spark"),
        ("tests/unit/spark/test_plan.py::test_a[a::b]", "spark"),
    ],
)
def test_all_of_spark_is_kept_together_and_else_each_file(nodeid: str, group: str) -> None:
    assert kept_together(nodeid) == group


def test_long_folders_come_first() -> None:
    names = ["tests/unit/a.py::t", "tests/interop/b.py::t", "tests/simulation/c.py::t"]

    assert sorted(names, key=place_in_line) == names[::-1]
