"""Row for row what Spark's own connector reads, and each reads what the other wrote.

One Spark session asks both connectors every question; each question is a test. Most go to a cluster of ours,
which so serves the official connector too; what needs transactions goes to an Apache broker.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("numba")

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.client.admin.groups import alter_group_offsets
from ottla.client.admin.topics import a_topic, create_topics, delete_records
from ottla.client.blocking.client import Client
from ottla.launch.cluster import Cluster
from ottla.model.ids import TopicPartition
from support.processes.apache import apache_cluster
from support.running.waiting import wait_until
from support.spark import compare
from support.spark.connector import connector_jars

pytestmark = [
    pytest.mark.full("starts a Spark of its own for each connector"),
    pytest.mark.slow,
    pytest.mark.apache,
    pytest.mark.java,
]

SECONDS_MAX = 1200
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
PER_CODEC = 100
BASE_MS = 1_700_000_000_000
KEPT = {"retention.ms": "-1"}  # The records are years old: retention would take them in mid-test.
ENDS = {"judged": {str(n): BASE_MS + 60 + n for n in range(3)}}
STARTS = {"judged": {str(n): BASE_MS + 20 * n for n in range(3)}}
WRITTEN = ("written", "by-column", "placed", "streamed", "unwritten", "capitals", "misplaced", "overwritten")

KEYED = ["cast(id AS string) AS key", "repeat('v', cast(id % 50 AS int)) AS value"]
HEADERS = "array(struct('h' AS key, cast(cast(id AS string) AS binary) AS value)) AS headers"


def read(how: str = "batch", *, subscribe: str | None = "judged", **options: str) -> dict[str, Any]:
    """A question about reading; names of options with ``_`` for ``.``."""
    given = {name.replace("_", "."): value for name, value in options.items()}
    if subscribe is not None:
        given["subscribe"] = subscribe
    return {"how": how, "options": {"includeHeaders": "true", **given}}


def refused(*, subscribe: str | None = "judged", **options: str) -> dict[str, Any]:
    return {**read(subscribe=subscribe, **options), "may_fail": True}


def write(name: str, columns: list[str], compared: list[str], **more: Any) -> dict[str, Any]:
    topics = {kind: f"{name}-{kind}" for kind in compare.CONNECTORS}
    return {
        "how": "written",
        "rows": 300,
        "columns": columns,
        "compared": compared,
        "topics": topics,
        "options": {},
        **more,
    }


SHORT: dict[str, dict[str, Any]] = {
    "the schema": read("schema"),
    "everything": read(),
    "from offsets to offsets": read(
        startingOffsets='{"judged":{"0":3,"1":-2,"2":10}}', endingOffsets='{"judged":{"0":30,"1":20,"2":-1}}'
    ),
    "from a time": read(startingTimestamp=str(BASE_MS + 50)),
    "tasks at the least": read("split", minPartitions="7"),
    "a stream in limited batches": read("stream", startingOffsets="earliest", maxOffsetsPerTrigger="170"),
    "a batch written with keys and headers": write(
        "written", [*KEYED, HEADERS], ["key", "value", "headers", "partition"]
    ),
}
LONG: dict[str, dict[str, Any]] = {
    "without headers": read(includeHeaders="false"),
    "a pattern": read(subscribe=None, subscribePattern="judg.*"),
    "a part of a name": read(subscribe=None, subscribePattern="udge"),
    "a pattern that fits a topic of Kafka's own": read(
        subscribe=None, subscribePattern="^(judged|__consumer_offsets)$"
    ),
    "some partitions": read(subscribe=None, assign='{"judged":[0,2]}'),
    "several topics": read(subscribe="judged,stamped"),
    "earliest to latest": read(startingOffsets="earliest", endingOffsets="latest"),
    "times of partitions": read(
        startingOffsetsByTimestamp=json.dumps(STARTS), endingTimestamp=str(BASE_MS + 90)
    ),
    "ending times of partitions": read(endingOffsetsByTimestamp=json.dumps(ENDS)),
    "a time goes before offsets": read(
        startingTimestamp=str(BASE_MS + 50), startingOffsets='{"judged":{"0":3,"1":-2,"2":10}}'
    ),
    "one time goes before times": read(
        startingTimestamp=str(BASE_MS + 50), startingOffsetsByTimestamp=json.dumps(STARTS)
    ),
    "a time beyond the end, from the latest": {
        **read(startingTimestamp=str(BASE_MS * 2), startingOffsetsByTimestampStrategy="latest"),
        "is_empty": True,
    },
    "an ending time beyond the end": read(endingTimestamp=str(BASE_MS * 2)),
    "tasks by both": read("split", minPartitions="9", maxRecordsPerPartition="90"),
    "fewer tasks than partitions": read("split", minPartitions="2"),
    "pieces that are split no more": read(
        "split",
        subscribe="lost",
        minPartitions="3",
        maxRecordsPerPartition="100",
        startingOffsets='{"lost":{"0":11}}',
        endingOffsets='{"lost":{"0":200}}',
    ),
    "patience": read(
        kafkaConsumer_pollTimeoutMs="60000", fetchOffset_numRetries="5", fetchOffset_retryIntervalMs="20"
    ),
    "a group of one's own": read(kafka_group_id="mine"),
    "a group's prefix": read(groupIdPrefix="mine-"),
    "settings of the client": read(
        kafka_max_partition_fetch_bytes="2000", kafka_fetch_max_wait_ms="100", kafka_client_id="judge"
    ),
    "times of the broker": read(subscribe="stamped"),
    "a log that was compacted": read(subscribe="compacted"),
    "a log whose beginning is lost, leniently": read(
        subscribe="lost", startingOffsets='{"lost":{"0":3}}', failOnDataLoss="false"
    ),
    "a stream over a lost beginning, leniently": read(
        "stream", subscribe="lost", startingOffsets='{"lost":{"0":3}}', failOnDataLoss="false"
    ),
    "a stream of everything": read("stream", startingOffsets="earliest"),
    "a stream from offsets": read("stream", startingOffsets='{"judged":{"0":3,"1":-2,"2":10}}'),
    "a stream from a time": read("stream", startingTimestamp=str(BASE_MS + 50)),
    "a stream from times": read("stream", startingOffsetsByTimestamp=json.dumps(STARTS)),
    "a stream of a pattern": read(
        "stream", subscribe=None, subscribePattern="judg.*", startingOffsets="earliest"
    ),
    "a stream of some partitions": read(
        "stream", subscribe=None, assign='{"judged":[1]}', startingOffsets="earliest"
    ),
    "a stream of the latest": {**read("stream"), "is_empty": True},
    "a stream in tiny batches": read(
        "stream", subscribe="lost,judged", startingOffsets="earliest", maxOffsetsPerTrigger="97"
    ),
    "a stream stopped and started": {
        **read("resumed", startingOffsets="earliest", maxOffsetsPerTrigger="200"),
        "runs": 3,
    },
    "a stream that waits for more": {
        **read(
            "followed",
            startingOffsets="earliest",
            minOffsetsPerTrigger="100",
            maxOffsetsPerTrigger="170",
            maxTriggerDelay="2s",
        ),
        "rows": PER_CODEC * len(CODECS),
    },
    "what is committed": {
        **read(subscribe="settled", kafka_isolation_level="read_committed"),
        "apache": True,
    },
    "what is not": {
        **read(subscribe="settled", kafka_isolation_level="read_uncommitted"),
        "apache": True,
    },
    "a stream of what is committed": {
        **read(
            "stream",
            subscribe="settled",
            startingOffsets="earliest",
            kafka_isolation_level="read_committed",
        ),
        "apache": True,
    },
    "a batch with its topic in a column": write(
        "by-column",
        [*KEYED, "'$TOPIC' AS topic"],
        ["key", "value", "headers", "partition"],
        names_topic=False,
    ),
    "a batch with its partition in a column": write(
        "placed",
        [
            "if(id % 3 = 0, null, cast(id AS string)) AS key",
            "cast(id AS string) AS value",
            "cast(id % 3 AS int) AS partition",
        ],
        ["key", "value", "partition"],
    ),
    "a batch with columns that are not written": write(
        "unwritten", [*KEYED, "1 AS topic", "'noon' AS timestamp"], ["key", "value", "partition"]
    ),
    "a batch with headers in capitals": write(
        "capitals",
        [*KEYED, "array(struct('h' AS KEY, cast('x' AS binary) AS Value)) AS headers"],
        ["key", "value", "headers"],
    ),
    "a stream that needs no more than nothing": read(
        "stream", startingOffsets="earliest", minOffsetsPerTrigger="0"
    ),
    "a stream from one connector into the other": {
        **write("streamed", [], ["key", "value", "headers"]),
        "how": "streamed",
        "options": {"subscribe": "judged", "startingOffsets": "earliest", "includeHeaders": "true"},
    },
}
REFUSED: dict[str, dict[str, Any]] = {
    "no topic": refused(subscribe=None),
    "two ways to name topics": refused(assign='{"judged":[0]}'),
    "a batch from the latest": refused(startingOffsets="latest"),
    "a batch to the earliest": refused(endingOffsets="earliest"),
    "a reset": refused(kafka_auto_offset_reset="earliest"),
    "automatic commits": refused(kafka_enable_auto_commit="true"),
    "a deserializer": refused(kafka_key_deserializer="java.lang.String"),
    "interceptors": refused(kafka_interceptor_classes="x"),
    "offsets that are no JSON": refused(startingOffsets="{oops"),
    "offsets that leave out a partition": refused(startingOffsets='{"judged":{"0":3,"1":-2}}'),
    "a time after every record": refused(startingTimestamp=str(BASE_MS * 2)),
    "a topic that is not there": refused(subscribe="nowhere"),
    "a batch from behind the end": refused(startingOffsets='{"judged":{"0":100000,"1":-2,"2":-2}}'),
    "a batch from behind the end, leniently": refused(
        startingOffsets='{"judged":{"0":100000,"1":-2,"2":-2}}', failOnDataLoss="false"
    ),
    "offsets in reverse": refused(
        startingOffsets='{"judged":{"0":5,"1":-2,"2":-2}}',
        endingOffsets='{"judged":{"0":2,"1":-1,"2":-1}}',
        failOnDataLoss="false",
    ),
    "an end before the beginning": refused(subscribe="lost", endingOffsets='{"lost":{"0":5}}'),
    "times in reverse": refused(startingTimestamp=str(BASE_MS + 60), endingTimestamp=str(BASE_MS + 20)),
    "times of partitions in reverse": refused(
        startingOffsetsByTimestamp=json.dumps(ENDS), endingOffsetsByTimestamp=json.dumps(STARTS)
    ),
    "times in nanoseconds": refused(subscribe="nanoseconds"),
    "a partition below zero": {
        **write("misplaced", [*KEYED, "-1 AS partition"], ["key"]),
        "may_fail": True,
    },
    "overwriting": {**write("overwritten", KEYED, ["key"]), "mode": "overwrite", "may_fail": True},
    "a stream from behind the end": {
        **read("stream", startingOffsets='{"judged":{"0":100000,"1":100000,"2":100000}}'),
        "may_fail": True,
    },
}
QUESTIONS = {
    **SHORT,
    **LONG,
    **{f"refused: {name}": question for name, question in REFUSED.items()},
}


def fill(cluster: Cluster) -> None:
    """The topics that are asked about."""
    servers = cluster.bootstrap_servers
    with Client(servers) as client:
        sinks = [f"{name}-{kind}" for name in WRITTEN for kind in compare.CONNECTORS]
        topics = [
            a_topic(name, partitions=3, replication_factor=2, configs=KEPT) for name in ("judged", *sinks)
        ]
        stamped = {**KEPT, "message.timestamp.type": "LogAppendTime"}
        compacted = {
            **KEPT,
            "cleanup.policy": "compact",
            "segment.bytes": "1000",
            "min.cleanable.dirty.ratio": "0.01",
            "max.compaction.lag.ms": "100",
        }
        topics += [
            a_topic("stamped", partitions=1, replication_factor=2, configs=stamped),
            a_topic("lost", partitions=1, replication_factor=2, configs=KEPT),
            a_topic("nanoseconds", partitions=1, replication_factor=2, configs=KEPT),
            a_topic("compacted", partitions=1, replication_factor=1, configs=compacted),
        ]
        client.run(create_topics, topics)
        for codec in CODECS:
            producer = client.producer(compression_type=codec)
            for n in range(PER_CODEC):
                producer.send(
                    "judged",
                    None if n % 9 == 0 else b"v" * n,
                    key=None if n % 11 == 0 else b"key %d" % n,
                    headers=tuple((f"h{at}", None if at else b"x") for at in range(n % 3)),
                    timestamp_ms=BASE_MS + n,
                )
            producer.flush()
        for name in ("stamped", "lost", "compacted"):
            producer = client.producer()
            for n in range(200):
                producer.send(name, b"%d" % n, key=b"%d" % (n % 7), timestamp_ms=BASE_MS + n)
                if n % 20 == 0:
                    producer.flush()
            producer.flush()
        client.run(delete_records, {TopicPartition("lost", 0): 10})
        producer.wait(producer.send("nanoseconds", b"v", timestamp_ms=BASE_MS * 1_000_000))
        client.run(alter_group_offsets, "anybody", {TopicPartition("judged", 0): 1})


def await_compaction(cluster: Cluster) -> None:
    """The closed segments hold each key once."""
    partition = TopicPartition("compacted", 0)
    with Client(cluster.bootstrap_servers) as client:

        def is_compacted() -> bool:
            consumer = client.consumer(auto_offset_reset="earliest")
            consumer.assign({partition: 0})
            count, last = 0, -1
            while last < 199:
                for record in consumer.poll(1_000).get(partition, ()):
                    count, last = count + 1, record.offset
            return count < 100

        wait_until(is_compacted, "the log is compacted", 60)


def settle(servers: str) -> None:
    """A topic with committed, aborted and plain records on an Apache broker."""
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic("settled", 2, 1)])["settled"].result(30)
    producer = Producer({"bootstrap.servers": servers, "transactional.id": "judge", "linger.ms": 0})
    producer.init_transactions(30)
    for turn in range(10):
        producer.begin_transaction()
        for n in range(20):
            producer.produce("settled", b"%d %d" % (turn, n), partition=n % 2)
        producer.flush()
        if turn % 3 == 1:
            producer.abort_transaction(30)
        else:
            producer.commit_transaction(30)
    plain = Producer({"bootstrap.servers": servers})
    plain.produce("settled", b"plain", partition=0)
    plain.flush()


@pytest.fixture(scope="module")
def answers(long_form: bool, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Every question's answers, from one Spark session."""
    jars = ",".join(map(str, connector_jars()))
    directory = tmp_path_factory.mktemp("compare")
    asked = {name: dict(question) for name, question in QUESTIONS.items() if long_form or name in SHORT}
    with ExitStack() as stack:
        settings = {"log.cleaner.backoff.ms": "200"}
        cluster = stack.enter_context(Cluster(2, sync=False, settings=settings))
        fill(cluster)
        servers = {False: cluster.bootstrap_servers}
        if long_form:
            await_compaction(cluster)
            apache = stack.enter_context(apache_cluster(directory / "apache"))
            servers[True] = apache.bootstrap
            settle(apache.bootstrap)
        for question in asked.values():
            question["servers"] = servers[question.get("apache", False)]
        yield ask(asked, jars, directory)


def ask(questions: dict[str, Any], jars: str, directory: Path) -> dict[str, Any]:
    (directory / "questions.json").write_text(json.dumps(questions), encoding="utf-8")
    program = [sys.executable, compare.__file__]
    done = subprocess.run(
        [*program, str(directory / "questions.json"), str(directory / "answers.json"), jars],
        env={**os.environ, "PYTHONWARNINGS": "default"},
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, Any] = json.loads((directory / "answers.json").read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in SHORT else pytest.mark.long) for name in QUESTIONS]
)
def test_both_connectors_answer_alike(name: str, answers: dict[str, Any]) -> None:
    ours, theirs = answers[name]["ottla"], answers[name]["kafka"]

    assert ours == theirs
    if name.startswith("refused: "):
        assert ours == ["refused"]
    else:
        assert ours != ["refused"]
        assert bool(ours) != QUESTIONS[name].get("is_empty", False)
