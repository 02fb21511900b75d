"""The pipeline that ``make run`` shows: it counts what flowed in, and leaves no trace when it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("numba")

from ottla.cli.local import demo
from ottla.launch.cluster import Cluster
from ottla.spark.demo import BATCHES, COUNTRIES, SampleOrders, answer
from support.processes.descendants import descendants, is_alive
from support.running.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.java, pytest.mark.filterwarnings("ignore::ResourceWarning")]

STOP_S_MAX = 120
SPEAK_S_MAX = 300


def test_the_demo_counts_exactly_the_orders_of_its_run(
    spark: SparkSession, cluster: Cluster, long_form: bool
) -> None:
    for _ in range(2 if long_form else 1):
        told: list[str] = []
        orders = SampleOrders(cluster.bootstrap_servers)
        orders.start()

        report = answer(spark, cluster.bootstrap_servers, orders, told.append)

        sent = orders.stop()
        assert report.is_well
        assert sent > 0
        assert report.headline.startswith(f"{sent} of {sent} orders were counted")
        (table,) = report.tables
        assert [row[0] for row in table.rows] == list(COUNTRIES)
        assert len(told) >= BATCHES


def test_without_spark_one_line_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(demo, "NEEDED", ("sys", "no_such_package"))

    assert demo.start_demo("127.0.0.1:9", tmp_path) is None
    assert capsys.readouterr().out == (
        "pipeline: not shown: no_such_package not installed; pip install 'ottla[spark]'\n"
    )


@pytest.mark.full("starts a Spark of its own")
@pytest.mark.parametrize(
    "said",
    [
        "pipeline: sample orders flow",
        pytest.param("pipeline: batch 0", marks=pytest.mark.long),
        pytest.param("; the cluster goes on running", marks=pytest.mark.long),
    ],
)
def test_ctrl_c_ends_the_cluster_and_its_demo_in_every_phase(said: str, tmp_path: Path) -> None:
    printed = tmp_path / "printed"
    with printed.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "ottla.cli.main", "up", "--demo", "--brokers", "1", "--port", "0"],
            cwd=tmp_path,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        wait_until(lambda: said in printed.read_text(), f"it says {said!r}", SPEAK_S_MAX)
        below = descendants(process.pid)
        os.killpg(process.pid, signal.SIGINT)
        code = process.wait(STOP_S_MAX)
    finally:
        process.kill()
        process.wait()

    text = printed.read_text()
    assert code == 0, text
    assert text.splitlines()[-1].startswith("stopped; the data is in ")
    assert "Traceback" not in text
    wait_until(lambda: not any(map(is_alive, below)), "nothing is left of it", 60)
