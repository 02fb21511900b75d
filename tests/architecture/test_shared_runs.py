"""Tests that several processes share: a file is run by one of them, with the cluster that it starts."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.running.durations import durations
from support.running.sharing import kept_together, longest_first

FILES = ("tests/unit/client/engine/test_engine.py", "tests/unit/client/producing/test_partitioner.py")


def run_pytest(directory: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *words]
    return subprocess.run(
        command, cwd=directory, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_each_file_is_run_by_one_process(repository: Path) -> None:
    done = run_pytest(repository, "-n", "2", "-vv", *FILES)

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


def test_the_longest_file_comes_first_and_all_of_spark_counts_as_one() -> None:
    seconds = {"tests/a.py": 5, "tests/b.py": 7, "tests/spark/c.py": 4, "tests/unit/spark/d.py": 4}
    files = ["tests/e.py", "tests/a.py", "tests/spark/c.py", "tests/b.py", "tests/unit/spark/d.py"]

    assert longest_first([f"{file}::test" for file in files], seconds) == [2, 4, 3, 1, 0]


def test_every_file_with_a_duration_exists(repository: Path) -> None:
    assert [file for file in durations() if not (repository / file).is_file()] == []


def marked_full(repository: Path) -> set[str]:
    files = (repository / "tests").rglob("test_*.py")
    is_marked = re.compile(r"mark\.full\(\"|\bfull_form\b")
    marked = [file for file in files if is_marked.search(file.read_text("utf-8"))]
    return {str(file.relative_to(repository)) for file in marked} - {"tests/architecture/test_shared_runs.py"}


def test_what_only_make_full_has_is_listed_for_people_to_read(repository: Path) -> None:
    page = (repository / "CONTRIBUTING.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| `(tests/\S+\.py)`", page, re.MULTILINE))

    assert listed == marked_full(repository)


@pytest.mark.slow
def test_a_test_marked_full_is_put_off_with_its_reason_and_not_lost(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "conftest.py").symlink_to(repository / "tests" / "conftest.py")
    (tmp_path / "test_two.py").write_text(
        "import pytest\ndef test_a(): pass\n@pytest.mark.full('takes hours')\ndef test_b(): pass\n"
    )

    short = run_pytest(tmp_path, "-n", "1", "test_two.py")
    full = run_pytest(tmp_path, "--full", "test_two.py")

    assert "1 passed" in short.stdout
    assert "only in make full: 1 test: takes hours" in short.stdout
    assert "2 passed" in full.stdout
    assert "only in make full" not in full.stdout
