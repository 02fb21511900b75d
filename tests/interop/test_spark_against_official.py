"""Row for row what Spark's own connector reads, and each reads what the other wrote."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("numba")

from ottla.client.admin.topics import a_topic, create_topics
from ottla.client.blocking import Client
from ottla.launch.cluster import Cluster
from support.spark_connector import connector_jars

pytestmark = [pytest.mark.long, pytest.mark.apache, pytest.mark.java]

SECONDS_MAX = 900
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
BASE_MS = 1_700_000_000_000
KEPT = {"retention.ms": "-1"}  # The records are years old: retention would take them in mid-test.

# In a process of its own: the connector's jars must be there when the JVM starts.
COMPARE = textwrap.dedent(
    """
    import json, sys
    from ottla.spark.session import spark_session

    servers, jars, work = sys.argv[1:]
    settings = {"spark.jars": jars, "spark.driver.memory": "1g", "spark.sql.shuffle.partitions": "2"}
    spark = spark_session("local[2]", settings=settings)
    answers = {}

    def rows(kind, options):
        reader = spark.read.format(kind).option("kafka.bootstrap.servers", servers)
        found = reader.option("includeHeaders", "true").options(**options).load().collect()
        return sorted(repr(tuple(row)) for row in found)

    def schema(kind):
        reader = spark.read.format(kind).option("kafka.bootstrap.servers", servers)
        return reader.options(subscribe="judged", includeHeaders="true").load().schema.json()

    answers["schema"] = [schema("ottla"), schema("kafka")]
    for name, options in json.load(open(f"{work}/cases.json")).items():
        answers[name] = [rows("ottla", options), rows("kafka", options)]

    def copy(source, sink, topic):
        read = spark.readStream.format(source).option("kafka.bootstrap.servers", servers)
        read = read.options(subscribe="judged", startingOffsets="earliest", includeHeaders="true").load()
        write = read.select("key", "value", "headers").writeStream.format(sink)
        write = write.option("kafka.bootstrap.servers", servers).option("topic", topic)
        write = write.option("includeHeaders", "true")
        write = write.option("checkpointLocation", f"{work}/{topic}").trigger(availableNow=True)
        write.start().awaitTermination()

    def contents(kind, topic):
        reader = spark.read.format(kind).option("kafka.bootstrap.servers", servers)
        found = reader.option("includeHeaders", "true").option("subscribe", topic).load()
        return sorted(repr(tuple(row)) for row in found.where("key is not null").select(
            "key", "value", "headers", "partition").collect())

    copy("ottla", "kafka", "by-official")
    copy("kafka", "ottla", "by-ottla")
    answers["sinks"] = [contents("kafka", "by-ottla"), contents("ottla", "by-official")]
    json.dump(answers, open(f"{work}/answers.json", "w"))
    spark.stop()
    """
)

CASES = {
    "everything": {"subscribe": "judged"},
    "pattern": {"subscribePattern": "judg.*"},
    "assigned": {"assign": '{"judged":[0,2]}'},
    "offsets": {
        "subscribe": "judged",
        "startingOffsets": '{"judged":{"0":3,"1":-2,"2":10}}',
        "endingOffsets": '{"judged":{"0":30,"1":20,"2":-1}}',
    },
    "one time": {"subscribe": "judged", "startingTimestamp": str(BASE_MS + 50)},
    "times": {
        "subscribe": "judged",
        "startingOffsetsByTimestamp": json.dumps({"judged": {str(n): BASE_MS + 20 * n for n in range(3)}}),
        "endingTimestamp": str(BASE_MS + 90),
    },
    "time beyond the end": {
        "subscribe": "judged",
        "startingTimestamp": str(BASE_MS * 2),
        "startingOffsetsByTimestampStrategy": "latest",
    },
    "split": {"subscribe": "judged", "minPartitions": "7"},
    "committed": {"subscribe": "judged", "kafka.isolation.level": "read_committed"},
}


def fill(servers: str) -> None:
    with Client(servers) as client:
        names = ("judged", "by-official", "by-ottla")
        topics = [a_topic(name, partitions=3, replication_factor=2, configs=KEPT) for name in names]
        client.run(create_topics, topics)
        for codec in CODECS:
            producer = client.producer(compression_type=codec)
            for n in range(100):
                producer.send(
                    "judged",
                    None if n % 9 == 0 else b"v" * n,
                    key=None if n % 11 == 0 else b"key %d" % n,
                    headers=tuple((f"h{at}", None if at else b"x") for at in range(n % 3)),
                    timestamp_ms=BASE_MS + n,
                )
            producer.flush()


def test_both_connectors_read_the_same_rows_and_write_to_the_same_partitions(tmp_path: Path) -> None:
    jars = ",".join(map(str, connector_jars()))
    (tmp_path / "cases.json").write_text(json.dumps(CASES), encoding="utf-8")
    script = tmp_path / "compare.py"
    script.write_text(COMPARE, encoding="utf-8")
    with Cluster(2, sync=False) as cluster:
        fill(cluster.bootstrap_servers)

        done = subprocess.run(
            [sys.executable, str(script), cluster.bootstrap_servers, jars, str(tmp_path)],
            env={**os.environ, "PYTHONWARNINGS": "default"},
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
            check=False,
        )

    assert done.returncode == 0, done.stderr[-4000:]
    answers = json.loads((tmp_path / "answers.json").read_text(encoding="utf-8"))
    assert set(answers) == {"schema", "sinks", *CASES}
    for name, (ours, theirs) in answers.items():
        assert ours == theirs, name
        assert ours or name == "time beyond the end", name
