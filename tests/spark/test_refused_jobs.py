"""What a job refuses is one line, with the flag that was typed, and nothing is written."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("numba")

from ottla.client.admin.topics import a_topic, create_topics
from ottla.client.blocking.client import Client
from ottla.client.fetching.offsets import list_offsets
from ottla.launch.cluster import Cluster
from ottla.model.ids import TopicPartition
from ottla.model.timestamps import LATEST
from support.processes.commands import Ran, run_command

pytestmark = [pytest.mark.slow, pytest.mark.java]


@pytest.fixture(scope="module")
def servers(cluster: Cluster) -> str:
    """A cluster with a topic of two partitions, and one that is too narrow for it."""
    with Client(cluster.bootstrap_servers) as client:
        topics = [
            a_topic("wide", partitions=2, replication_factor=1),
            a_topic("narrow-target", partitions=1, replication_factor=1),
        ]
        client.run(create_topics, topics)
        producer = client.producer()
        for n in range(10):
            producer.send("wide", b"%d" % n, partition=n % 2)
        producer.flush()
    return cluster.bootstrap_servers


def run(servers: str, job: str, *words: str) -> Ran:
    return run_command("pipeline", "run", job, *words, "--bootstrap-server", servers)


@pytest.mark.full("starts a Spark of its own")
def test_a_replay_into_too_few_partitions_writes_nothing(servers: str, tmp_path: Path) -> None:
    archive = str(tmp_path / "archive")
    run(servers, "archive", "--topics", "wide", "--to", archive)

    refused = run(servers, "replay", "--from", archive, "--topic", "narrow-target")

    with Client(servers) as client:
        partition = TopicPartition("narrow-target", 0)
        assert client.run(list_offsets, {partition: LATEST})[partition].offset == 0
    assert refused.exit_code == 1
    assert refused.stderr == (
        "ottla: --topic 'narrow-target': it has 1 of the 2 partitions that the archive's records keep, and "
        "nothing was written; add partitions (`ottla topics --alter --topic narrow-target --partitions 2`), "
        "or let keys choose with --by-key\n"
    )


@pytest.mark.parametrize(
    ("job", "words", "said"),
    [
        ("archive", "--topics wide,missing --to TMP", "--topics 'missing': the cluster has no such topic; "),
        ("archive", "--topics wide --to FILE", "--to 'FILE': it cannot be made: File exists; choose a dir"),
        ("replay", "--from TMP/missing --topic wide", "--from 'TMP/missing': there is no such directory; "),
        ("plan", "--to TMP", "--to 'TMP': it is a directory; name a file that you may write to"),
        (
            "aggregate",
            "--topic wide --to-topic w --checkpoint TMP --window soon",
            "--window 'soon': it is not a span of time; write '1 minute'",
        ),
    ],
)
def test_a_mistake_is_told_by_its_flag_before_spark_is_started(
    job: str, words: str, said: str, servers: str, tmp_path: Path
) -> None:
    file = tmp_path / "file"
    file.write_text("")
    names = {"TMP": str(tmp_path), "FILE": str(file)}
    for name, path in names.items():
        words, said = words.replace(name, path), said.replace(name, path)

    refused = run(servers, job, *words.split())

    assert refused.exit_code == 1
    assert refused.stderr.startswith(f"ottla: {said}")
    assert refused.stderr.count("\n") == 1
    assert "starting Spark" not in refused.stdout


@pytest.mark.full("starts a Spark of its own")
def test_what_spark_alone_finds_out_is_one_line_too(servers: str, tmp_path: Path) -> None:
    words = ("--topics", "wide", "--to", str(tmp_path / "archive"), "--master", "local[x]")

    refused = run(servers, "archive", *words)

    assert refused.exit_code == 1
    assert refused.stderr == (
        "ottla: Spark gave up: org.apache.spark.SparkException: Could not parse Master URL: 'local[x]'; "
        "mend what it names, then run the command again\n"
    )
