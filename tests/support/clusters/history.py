"""A broker's life in half a minute, after which its directory holds every kind of file and batch."""

from __future__ import annotations

import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, ElectionType, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from support.processes.apache import ApacheCluster
from support.running.waiting import wait_until

SEGMENT_BYTES = 16_384
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
TOPICS: dict[str, dict[str, str]] = {
    "plain": {},
    "idempotent": {},
    "transactional": {},
    "stamped": {"message.timestamp.type": "LogAppendTime"},
    "trimmed": {},
    "retained": {"retention.bytes": str(SEGMENT_BYTES), "file.delete.delay.ms": "500"},
    "compacted": {
        "cleanup.policy": "compact",
        "min.cleanable.dirty.ratio": "0.01",
        "delete.retention.ms": "200",
        "file.delete.delay.ms": "500",
    },
}
BROKER_SETTINGS = {
    "log.segment.bytes": SEGMENT_BYTES,
    "log.retention.check.interval.ms": 500,
    "log.cleaner.backoff.ms": 200,
    "auto.create.topics.enable": False,
    "auto.leader.rebalance.enable": False,
    "offsets.topic.replication.factor": 2,
    "transaction.state.log.replication.factor": 2,
}
TRIMMED_AT = 57


@dataclass(frozen=True, slots=True)
class History:
    """Directories that an Apache broker left: after a clean stop, and copied while it ran."""

    stopped: Path
    running: Path

    @classmethod
    def in_directory(cls, directory: Path) -> History:
        return cls(directory / "stopped", directory / "running")


def live_through(cluster: ApacheCluster, directory: Path) -> History:
    """Let two brokers serve all kinds of producers over several leader epochs, then stop the first.

    It leads, misses an era, follows, and leads again: its logs hold what it took in both roles.
    """
    first, second = cluster.brokers.values()
    admin = AdminClient(_client(cluster))
    topics = [
        NewTopic(name, 1, replica_assignment=[[1, 2]], config=config) for name, config in TOPICS.items()
    ]
    wait_for_all(admin.create_topics(topics))
    _produce_all(cluster, era=0)
    assert first.shut_down() in (0, 143), first.log_tail()
    _produce_all(cluster, era=1)
    first.restart({1, 2})
    wait_until(lambda: _lead_again(admin), "the first broker leads again", 90, every=0.5)
    open_ended = _produce_all(cluster, era=2)
    wait_for_all(admin.delete_records([TopicPartition("trimmed", 0, TRIMMED_AT)]))
    _commit_offsets(admin, cluster)
    wait_until(lambda: _is_tidied(first.log_dir), "retention and compaction have worked", 90)
    left = History.in_directory(directory)
    shutil.copytree(first.log_dir, left.running, copy_function=_copy_if_there)
    second.kill()
    assert first.shut_down() in (0, 143), first.log_tail()
    shutil.copytree(first.log_dir, left.stopped)
    open_ended.purge()
    return left


def _copy_if_there(source: str, target: str) -> None:
    """A running broker renames and removes files while they are copied; kill -9 would leave none either."""
    with suppress(FileNotFoundError):
        shutil.copy2(source, target)


def _lead_again(admin: AdminClient) -> bool:
    wait_for_all({"election": admin.elect_leaders(ElectionType.PREFERRED)})
    topics = admin.list_topics(timeout=30).topics
    partitions = [topics[name].partitions[0] for name in TOPICS]
    return all(partition.leader == 1 and len(partition.isrs) == 2 for partition in partitions)


def _client(cluster: ApacheCluster, **settings: Any) -> dict[str, Any]:
    """Settings of a librdkafka client that says nothing when a broker goes away."""
    return {"bootstrap.servers": cluster.bootstrap, "log_level": 0, **settings}


def wait_for_all(futures: Any) -> None:
    """Every answer of an admin call, or its error."""
    for future in futures.values():
        future.result(60)


def _produce_all(cluster: ApacheCluster, era: int) -> Producer:
    for number, codec in enumerate(CODECS):
        plain = Producer(_client(cluster, **{"compression.type": codec, "linger.ms": 5}))
        for index in range(60):
            for topic in ("plain", "stamped", "trimmed", "retained"):
                plain.produce(
                    topic,
                    _value(era, index),
                    key=f"{codec}-{index}",
                    headers=[("era", str(era)), ("none", None)],
                )
            plain.produce("compacted", _value(era, index), key=f"key-{index % 9}")
            if index % 20 == 19:
                plain.flush(60)
        plain.produce("compacted", None, key=f"key-{number}")
        assert plain.flush(60) == 0
    idempotent = Producer(_client(cluster, **{"enable.idempotence": True, "compression.type": "lz4"}))
    for index in range(120):
        idempotent.produce("idempotent", _value(era, index), key=str(index))
        if index % 10 == 9:
            assert idempotent.flush(60) == 0
    return _transact(cluster, era)


def _transact(cluster: ApacheCluster, era: int) -> Producer:
    for number in range(6):
        producer = _transactional(cluster, f"worker-{number % 2}")
        for index in range(15):
            producer.produce("transactional", _value(era, index), key=str(index))
            producer.produce("compacted", _value(era, index), key=f"txn-{index % 4}")
        assert producer.flush(60) == 0
        if number % 3 == 0:
            producer.abort_transaction(60)
        else:
            producer.commit_transaction(60)
    open_ended = _transactional(cluster, f"open-ended-{era}")
    open_ended.produce("transactional", b"never decided", key=b"open")
    assert open_ended.flush(60) == 0
    return open_ended


def _transactional(cluster: ApacheCluster, name: str) -> Producer:
    producer = Producer(_client(cluster, **{"transactional.id": name, "transaction.timeout.ms": 600_000}))
    producer.init_transactions(60)
    producer.begin_transaction()
    return producer


def _commit_offsets(admin: AdminClient, cluster: ApacheCluster) -> None:
    consumer = Consumer(_client(cluster, **{"group.id": "readers", "auto.offset.reset": "earliest"}))
    consumer.subscribe(["plain"])
    wait_until(lambda: consumer.poll(1), "a member of the group reads", 90)
    consumer.commit(asynchronous=False)
    producer = _transactional(cluster, "offset-committer")
    producer.send_offsets_to_transaction(
        [TopicPartition("plain", 0, 11, "noted")], consumer.consumer_group_metadata(), 30
    )
    producer.commit_transaction(60)
    consumer.close()
    lone = ConsumerGroupTopicPartitions("lone", [TopicPartition("idempotent", 0, 3)])
    wait_for_all(admin.alter_consumer_group_offsets([lone]))
    wait_for_all(admin.delete_consumer_groups(["lone"]))


def _is_tidied(log_dir: Path) -> bool:
    checkpoint = log_dir / "cleaner-offset-checkpoint"
    try:
        kept = sum(file.stat().st_size for file in (log_dir / "retained-0").glob("*.log"))
    except FileNotFoundError:
        return False  # Retention is at work.
    # Those of the trimmed topic stay for a minute and belong to the picture.
    leftovers = [*log_dir.glob("compacted-0/*.*.*"), *log_dir.glob("retained-0/*.*.*")]
    return (
        checkpoint.exists()
        and "compacted 0 " in checkpoint.read_text()
        and kept <= 3 * SEGMENT_BYTES
        and not leftovers
    )


def _value(era: int, index: int) -> bytes:
    return f"era {era} record {index} ".encode() * (1 + index % 40)
