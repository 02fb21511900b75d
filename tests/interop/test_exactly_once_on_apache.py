"""Exactly-once writing into an Apache broker, killed at every point of a batch."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("numba")

from ottla.client.admin.topics import a_topic, create_topics
from ottla.client.blocking.client import Client
from support.processes.apache import ApacheCluster
from support.spark.dying_sink import POINTS, survives

pytestmark = [
    pytest.mark.full("kills a process at every point of a batch, against Apache"),
    pytest.mark.slow,
    pytest.mark.apache,
    pytest.mark.java,
]


@pytest.mark.parametrize("point", POINTS)
def test_a_query_killed_at_any_point_writes_each_row_once(
    one_apache: ApacheCluster, tmp_path: Path, point: str, long_form: bool
) -> None:
    lives = 20 if long_form else 1
    for seed in range(lives):
        topic = f"killed-{POINTS.index(point)}-{seed}"
        with Client(one_apache.bootstrap) as client:
            client.run(create_topics, [a_topic(topic, partitions=3, replication_factor=1)])
        survives(one_apache.bootstrap, topic, tmp_path / "done", point, Random(f"{point} {seed}"))
