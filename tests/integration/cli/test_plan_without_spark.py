"""``ottla pipeline run plan`` is a question to the brokers: where Spark is not installed it works as well."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ottla.cli.tools.reassign.plan import read_plan
from ottla.launch.cluster import Cluster
from support.processes.commands import Run

pytestmark = [pytest.mark.slow, pytest.mark.java]

WITHOUT_SPARK = (
    "import sys; sys.modules |= dict.fromkeys(('pyspark', 'py4j', 'pyarrow', 'numba'));"
    "from ottla.cli.main import main; main(sys.argv[1:])"
)


def run_without_spark(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", WITHOUT_SPARK, *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_a_plan_is_made_without_spark(cluster: Cluster, done: Run, tmp_path: Path) -> None:
    done("topics", "--create", "--topic", "lopsided", "--replica-assignment", ",".join(["0:1"] * 6))
    file = tmp_path / "plan.json"
    words = ("--to", str(file), "--bootstrap-server", cluster.bootstrap_servers)

    planned = run_without_spark("pipeline", "run", "plan", *words)

    assert planned.stderr == ""
    assert planned.returncode == 0
    assert "Spark" not in planned.stdout
    assert read_plan(file)


def test_a_job_that_needs_spark_says_what_to_install(cluster: Cluster) -> None:
    refused = run_without_spark("pipeline", "run", "audit", "--bootstrap-server", cluster.bootstrap_servers)

    assert refused.returncode == 1
    assert refused.stderr.startswith("ottla: py4j")
    assert refused.stderr.endswith(" is not installed; pip install 'ottla[spark]'\n")
