"""What lies in the user's directory is not taken for a module of ours."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ottla.launch.cluster import BrokerProcess
from support.processes.commands import run_here
from support.running.waiting import wait_until

pytestmark = pytest.mark.slow

TRAP = "raise SystemExit(77)\n"


@pytest.fixture
def a_directory_with_random_py(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("random.py", "typer.py", "asyncio.py"):
        (tmp_path / name).write_text(TRAP)
    return tmp_path


def test_a_broker_of_a_cluster(a_directory_with_random_py: Path) -> None:
    broker = BrokerProcess(0, a_directory_with_random_py / "broker-0")
    broker.launch({})
    wait_until(lambda: not broker.is_running, "it has read its settings")
    broker.stop()

    assert broker.exit_code == 1, "its settings are refused"


def test_a_broker_by_itself(a_directory_with_random_py: Path) -> None:
    words = ["-P", "-m", "ottla.cli.main", "broker", "no-such.properties"]

    assert subprocess.run([sys.executable, *words], capture_output=True, check=False).returncode == 1


def test_kafkas_scripts(a_directory_with_random_py: Path) -> None:
    run_here("kafka-scripts", "bin")

    ran = subprocess.run(["bin/kafka-topics.sh", "--version"], capture_output=True, check=False)

    assert (ran.returncode, ran.stdout[:6]) == (0, b"ottla "), ran.stderr
