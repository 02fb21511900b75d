"""What the pages about Spark tell people to type is typed here."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("numba")

from ottla.client.admin.topics import a_topic, create_topics
from ottla.client.blocking.client import Client
from ottla.launch.cluster import Cluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.java, pytest.mark.filterwarnings("ignore::ResourceWarning")]

PYTHON = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def run(block: str, servers: str, directory: Path, **known: Any) -> dict[str, Any]:
    """Run a block of a page against our cluster; what it has named then."""
    file = directory / "typed.py"
    file.write_text(block.replace("localhost:9092", servers), encoding="utf-8")
    return runpy.run_path(str(file), init_globals=known)


def test_the_first_ten_lines_make_a_stream_and_the_others_run_too(
    spark: SparkSession, cluster: Cluster, tmp_path: Path, repository: Path
) -> None:
    servers = cluster.bootstrap_servers
    stream, reading, writing = PYTHON.findall((repository / "docs/spark/start.md").read_text())
    assert len([line for line in stream.splitlines() if line]) <= 10
    with Client(servers) as client:
        client.run(create_topics, [a_topic("orders", partitions=2, replication_factor=1)])
        producer = client.producer()
        for n in range(20):
            producer.send("orders", b"%d" % n)
        producer.flush()

    # Only the line that waits for ever is left out.
    assert "query.awaitTermination()\n" in stream
    query = run(stream.replace("query.awaitTermination()\n", ""), servers, tmp_path)["query"]
    query.processAllAvailable()
    seen = sum(progress["numInputRows"] for progress in query.recentProgress)
    query.stop()
    run(writing, servers, tmp_path, df=spark.range(3).selectExpr("id"))
    named = run(reading, servers, tmp_path, spark=spark)

    assert seen == 20
    assert named["rows"].columns == ["value"]
    assert {row["value"] for row in named["rows"].collect()} >= {b'{"id":0}', b'{"id":1}', b'{"id":2}'}
