"""Our code is shipped to executors that do not have it, and one of them dies in the middle of a batch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("numba")

from ottla.client.admin.topics import a_topic, create_topics
from ottla.client.blocking.client import Client
from ottla.launch.cluster import Cluster
from ottla.model.ids import TopicPartition
from support.spark import shipped
from support.spark.dying_sink import committed

pytestmark = [
    pytest.mark.full("starts a Spark of its own"),
    pytest.mark.slow,
    pytest.mark.java,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

MASTER = "local-cluster[2,1,1024]"
SECONDS_MAX = 300
COUNT = 3_000


def a_python_without_ottla(directory: Path) -> Path:
    """An environment that sees this one's packages, but not what their ``.pth`` files name."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(directory)], check=True)
    (packages,) = directory.glob("lib/python*/site-packages")
    (packages / "shared.pth").write_text(sysconfig.get_path("purelib") + "\n")
    python = directory / "bin" / "python"
    found = subprocess.run(
        [python, "-c", "import numba, pyspark; import ottla"], capture_output=True, text=True
    )
    assert "No module named 'ottla'" in found.stderr
    return python


def a_spark_home(directory: Path) -> Path:
    """The installed Spark under another name: workers of a local cluster keep their files in its home."""
    import pyspark

    directory.mkdir()
    for entry in Path(pyspark.__file__).parent.iterdir():
        (directory / entry.name).symlink_to(entry)
    return directory


def test_a_stream_runs_where_the_workers_python_lacks_ottla(cluster: Cluster, tmp_path: Path) -> None:
    servers = cluster.bootstrap_servers
    with Client(servers) as client:
        topics = [a_topic(name, partitions=1, replication_factor=1) for name in ("near", "near-copied")]
        client.run(create_topics, topics)
        producer = client.producer()
        for n in range(50):
            producer.send("near", b"%d" % n, partition=0)
        producer.flush()
    streamed = Path(shipped.__file__).with_name("streamed.py")

    done = subprocess.run(
        [sys.executable, streamed, servers, "near", "near-copied", str(tmp_path / "checkpoint")],
        env={**os.environ, "PYSPARK_PYTHON": str(a_python_without_ottla(tmp_path / "python"))},
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )

    assert done.returncode == 0, done.stderr[-4000:]
    assert committed(servers, "near-copied") == list(range(50))


@pytest.mark.long
def test_executors_without_ottla_run_it_and_may_die(cluster: Cluster, tmp_path: Path) -> None:
    servers = cluster.bootstrap_servers
    with Client(servers) as client:
        topics = [a_topic(name, partitions=2, replication_factor=1) for name in ("shipped", "shipped-back")]
        client.run(create_topics, topics)
        producer = client.producer()
        for n in range(COUNT):
            producer.send("shipped", b"%d" % n, partition=n % 2)
        producer.flush()
    answers = tmp_path / "answers.json"

    done = subprocess.run(
        [sys.executable, shipped.__file__, MASTER, servers, "shipped", "shipped-back", str(answers)],
        env={
            **os.environ,
            "PYSPARK_PYTHON": str(a_python_without_ottla(tmp_path / "python")),
            "SPARK_HOME": str(a_spark_home(tmp_path / "spark")),
        },
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )

    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads(answers.read_text())
    assert not any(found["installed"])
    assert len(found["killed"]) == 1
    assert found["read"] == sorted([n % 2, n // 2] for n in range(COUNT))
    with Client(servers) as client:
        consumer = client.consumer()
        consumer.assign(dict.fromkeys((TopicPartition("shipped-back", n) for n in range(2)), 0))
        back: list[int] = []
        while len(back) < 1_000:
            back += [int(r.value or b"") for records in consumer.poll(5_000).values() for r in records]
    assert sorted(back) == list(range(1_000))
