"""Data directories change hands: Apache's are opened by Ottla, Ottla's by a real Apache broker."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from kazoo.client import KazooClient

from ottla.config.log import LogConfig
from ottla.model.ids import TopicPartition as Partition
from ottla.records.batch import read_header, stamp
from ottla.records.builder import build_batch
from ottla.records.compression import Codec
from ottla.records.control import build_end_marker
from ottla.records.record import Record
from ottla.records.validate import Origin
from ottla.storage.directories.log_dirs import LogDirs
from ottla.storage.disk.checkpoints import decode_partition_metadata
from ottla.storage.disk.port import OsDisk
from ottla.storage.log.log import Log
from ottla.storage.log.outcomes import Appended
from support.clusters.history import TRIMMED_AT, History, wait_for_all
from support.logs.twins import KafkaLog, OttlaLog, difference, files_of
from support.processes.apache import ApacheBroker, ApacheCluster, apache_cluster
from support.processes.apache_tools import run_main
from support.running.waiting import wait_until
from support.wire.records_oracle import described_by_java

pytestmark = [pytest.mark.apache, pytest.mark.java, pytest.mark.slow]

SEGMENT_BYTES = 20_000
EPOCH_MAX = 2
# Kafka forgets producers that have been silent for a day, so these cannot have written in 1970.
WRITTEN_MS = int(time.time() * 1000)
ALARMS = (" WARN ", " ERROR ", "Recovering", "Rebuilding", "corrupt", "Truncating", "Deleting segment")


# -- Apache's directory, opened by Ottla ---------------------------------------------------------------


@pytest.mark.parametrize("way", ["stopped", "running"])
def test_ottla_finds_in_apaches_directory_what_kafka_finds(
    apache_history: History, tmp_path: Path, way: str
) -> None:
    """After a clean stop, and in a directory copied under a running broker, as kill -9 would leave it."""
    source = apache_history.stopped if way == "stopped" else apache_history.running
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    shutil.copytree(source, ours)
    shutil.copytree(source, theirs)
    recovery_points = _offsets(source / "recovery-point-offset-checkpoint")
    starts = _offsets(source / "log-start-offset-checkpoint")

    dirs = _opened(ours)

    assert len(dirs.logs) == len(recovery_points) == 17
    for name, recovery_point in recovery_points.items():
        state = OttlaLog.describing(dirs, name).state()
        kafka = KafkaLog(theirs, {}, name)
        expected = kafka.open(
            1_000, clean=way == "stopped", log_start_offset=starts.get(name, 0), recovery_point=recovery_point
        )
        expected = kafka.call("high_watermark", offset=state["high_watermark"])
        if way == "running":
            # Ours looks one segment further back than it must; what is aborted there has no data any more.
            assert all(entry in expected["aborted"] for entry in state["aborted"])
            expected["aborted"] = state["aborted"]
            _keep_only_last_batches(state, expected)
        assert state == expected, f"{name}: {difference(state, expected)}"
        kafka.call("close")


def test_ottla_leaves_a_clean_directory_of_apache_as_it_was(apache_history: History, tmp_path: Path) -> None:
    ours = tmp_path / "ours"
    shutil.copytree(apache_history.stopped, ours)

    dirs = _opened(ours)
    ends = {str(partition): log.end_offset for partition, log in dirs.logs.items()}
    starts = {str(partition): log.log_start_offset for partition, log in dirs.logs.items()}
    dirs.close()

    assert ends == _offsets(apache_history.stopped / "recovery-point-offset-checkpoint")
    for name in ends:
        start = starts[name]
        before, after = files_of(apache_history.stopped / name, start), files_of(ours / name, start)
        for file, content in before.items():
            if file.endswith(".snapshot") and file.replace(".snapshot", ".log") not in before:
                continue  # neither at a segment's base nor at the end: Kafka would remove it at a start, too
            assert after.get(file) == content, f"{name}/{file}"


def test_every_record_of_apaches_directory_is_read_back(apache_history: History, tmp_path: Path) -> None:
    ours = tmp_path / "ours"
    shutil.copytree(apache_history.stopped, ours)

    dirs = _opened(ours)

    log = dirs.logs[Partition("trimmed", 0)]
    assert log.log_start_offset == TRIMMED_AT
    for partition, log in dirs.logs.items():
        written = b"".join(file.read_bytes() for file in sorted((ours / str(partition)).glob("*.log")))
        assert _read_all(log) == written[_size_below(written, log.log_start_offset) :]


def test_gaps_between_segments_of_apaches_survive_a_crash(tmp_path: Path) -> None:
    """A follower of a compacted leader gets gaps, and Kafka names a segment after its first batch."""
    theirs = KafkaLog(tmp_path, {"segment.bytes": "700"})
    theirs.open(1_000, clean=True)
    for offset in range(0, 200, 20):
        batch = bytearray(_batch(0, 2))
        stamp(batch, 0, offset, 1)
        theirs.call("append", now_ms=1_000, records=batch.hex(), follower=True)
    expected = theirs.call("state")
    theirs.call("abandon")

    dirs = _opened(tmp_path)

    state = OttlaLog.describing(dirs, "orders-0").state()
    assert state["segments"] == expected["segments"]
    assert state["end_offset"] == expected["end_offset"] == 182


# -- Ottla's directory, opened by Apache ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HandedOver:
    """An Apache broker that runs on files of Ottla's, and what they hold."""

    cluster: ApacheCluster
    broker: ApacheBroker
    states: dict[str, dict[str, Any]]
    log_text: str
    before: Path


TOPICS: dict[str, dict[str, str]] = {
    "segments": {"segment.bytes": str(SEGMENT_BYTES)},
    "codecs": {"segment.bytes": str(SEGMENT_BYTES)},
    "producers": {"segment.bytes": str(SEGMENT_BYTES)},
    "transactions": {"segment.bytes": str(SEGMENT_BYTES)},
    "begun-later": {"segment.bytes": str(SEGMENT_BYTES)},
    "untouched": {},
    "written-on": {},
}


@pytest.fixture(scope="module")
def handed_over(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HandedOver]:
    directory = tmp_path_factory.mktemp("handed-over")
    with apache_cluster(directory, 1, 1) as cluster:
        [broker] = cluster.brokers.values()
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
        topics = [NewTopic(name, 1, 1, config=config) for name, config in TOPICS.items()]
        wait_for_all(admin.create_topics(topics))
        assert broker.shut_down() in (0, 143), broker.log_tail()
        states = _write_with_ottla(broker.log_dir)
        _raise_leader_epochs(cluster.zk_connect)
        before = directory / "before"
        shutil.copytree(broker.log_dir, before)
        lived = len(broker.log_text())
        broker.restart()
        _await_leader(cluster.bootstrap)
        yield HandedOver(cluster, broker, states, broker.log_text()[lived:], before)


def test_apache_starts_on_ottlas_directory_without_rebuilding_anything(handed_over: HandedOver) -> None:
    of_storage = ("(kafka.log.", "(org.apache.kafka.storage.")
    lines = [line for line in handed_over.log_text.splitlines() if any(name in line for name in of_storage)]
    loading = "Loading producer state from snapshot file 'SnapshotFile(offset={}, file={}/{}/"

    assert [line for line in lines if any(alarm in line for alarm in ALARMS)] == []
    assert "since clean shutdown file was found" in handed_over.log_text
    for name, state in handed_over.states.items():
        if state["end_offset"]:
            line = loading.format(state["end_offset"], handed_over.broker.log_dir, name)
            assert line in handed_over.log_text, f"{name} was not loaded from the snapshot at its end"
    for name, state in handed_over.states.items():
        now = files_of(handed_over.broker.log_dir / name)
        if name in (
            "written-on-0",
            "begun-later-0",
        ):  # one is written to, one loses what lies below its start
            continue
        for file, content in files_of(handed_over.before / name, state["log_start_offset"]).items():
            if not file.endswith(("index", "-checkpoint")):  # a running broker stretches its active indexes
                assert now[file] == content, f"{name}/{file} was written anew"


def test_apache_reports_ottlas_offsets(handed_over: HandedOver) -> None:
    said = {}
    for moment, field in (("-2", "log_start_offset"), ("-1", "end_offset")):
        args = ("--bootstrap-server", handed_over.cluster.bootstrap, "--time", moment)
        run = run_main("org.apache.kafka.tools.GetOffsetShell", *args)
        said[field] = {line.split(":")[0]: int(line.split(":")[2]) for line in run.stdout.split()}

    for name, state in handed_over.states.items():
        topic = name.removesuffix("-0")
        if topic == "written-on":
            continue
        assert said["log_start_offset"][topic] == state["log_start_offset"], name
        assert said["end_offset"][topic] == state["high_watermark"], name


def test_a_client_reads_every_record_that_ottla_wrote(handed_over: HandedOver) -> None:
    consumer = Consumer({"bootstrap.servers": handed_over.cluster.bootstrap, "group.id": "reader"})
    for topic in ("segments", "codecs", "producers"):
        end = handed_over.states[f"{topic}-0"]["end_offset"]
        consumer.assign([TopicPartition(topic, 0, 0)])
        got: list[tuple[int | None, bytes | None, bytes | None]] = []
        while len(got) < end:
            message = consumer.poll(20)
            assert message is not None, f"{topic} stops after {len(got)} of {end} records"
            assert message.error() is None, message.error()
            got.append((message.offset(), message.key(), message.value()))
        assert got == [(offset, f"key-{offset}".encode(), _value(offset)) for offset in range(end)]
    consumer.close()


def test_kafkas_dump_tool_has_no_complaint_about_ottlas_files(handed_over: HandedOver) -> None:
    directories = [handed_over.before / name for name in handed_over.states]
    paths = [str(file) for directory in directories for file in sorted(directory.glob("0*"))]

    run = run_main("kafka.tools.DumpLogSegments", "--deep-iteration", "--files", ",".join(paths))

    assert (run.exit_code, run.stderr) == (0, "")
    assert "isvalid: false" not in run.stdout
    assert "invalid bytes" not in run.stdout


def test_apache_knows_ottlas_producers(handed_over: HandedOver) -> None:
    said = _described_producers(handed_over, "producers")

    expected = {
        (producer["producer_id"], producer["epoch"], producer["batches"][-1][1])
        for producer in handed_over.states["producers-0"]["producers"]
    }
    assert {(int(row[0]), int(row[1]), int(row[3])) for row in said} == expected


def test_apache_sees_the_transaction_that_is_still_open(handed_over: HandedOver) -> None:
    said = _described_producers(handed_over, "transactions")

    state = handed_over.states["transactions-0"]
    open_since = {
        str(each["producer_id"]): each["first_offset_of_transaction"] for each in state["producers"]
    }
    for row in said:
        started = open_since[row[0]]
        assert row[5] == ("None" if started == -1 else str(started))
    assert any(started >= 0 for started in open_since.values()), "one transaction is open"
    assert state["last_stable_offset"] < state["end_offset"]


def test_apache_goes_on_where_ottla_ended(handed_over: HandedOver) -> None:
    delivered: list[int | None] = []
    producer = Producer({"bootstrap.servers": handed_over.cluster.bootstrap, "enable.idempotence": True})
    producer.produce(
        "written-on", b"first", on_delivery=lambda _, message: delivered.append(message.offset())
    )
    assert producer.flush(30) == 0

    assert delivered == [40]


def _write_with_ottla(log_dir: Path) -> dict[str, dict[str, Any]]:
    """Replace the topics' directories by ones that Ottla's storage fills, under the same topic ids."""
    ids = {}
    for name in TOPICS:
        ids[name] = decode_partition_metadata((log_dir / f"{name}-0" / "partition.metadata").read_bytes())
        shutil.rmtree(log_dir / f"{name}-0")
    dirs = LogDirs(OsDisk(), [str(log_dir)])
    config = LogConfig(segment_bytes=SEGMENT_BYTES)
    dirs.lock()
    dirs.open(config, {}, 1_000)
    for name, topic_id in ids.items():
        dirs.create(Partition(name, 0), config, topic_id=topic_id, now_ms=1_000)
    _fill(dirs)
    for log in dirs.logs.values():
        log.set_high_watermark(log.end_offset)
    dirs.logs[Partition("begun-later", 0)].raise_log_start_offset(77)
    states = {f"{name}-0": OttlaLog.describing(dirs, f"{name}-0").state() for name in TOPICS}
    dirs.close()
    return states


def _raise_leader_epochs(zk_connect: str) -> None:
    """Let the next leader come after Ottla's: else Apache leads in an epoch that is taken, and warns."""
    client = KazooClient(hosts=zk_connect)
    client.start()
    for name in TOPICS:
        path = f"/brokers/topics/{name}/partitions/0/state"
        state = json.loads(client.get(path)[0])
        client.set(path, json.dumps({**state, "leader_epoch": EPOCH_MAX + 1}).encode())
    client.stop()
    client.close()


def _await_leader(bootstrap: str) -> None:
    """Until the broker leads every topic: by then it has said what it thinks of their files."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "watcher", "log_level": 0})
    for name in TOPICS:
        wait_until(lambda name=name: _watermarks(consumer, name), f"{name} is led")
    consumer.close()


def _watermarks(consumer: Consumer, topic: str) -> tuple[int, int] | None:
    try:
        return consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=5)
    except KafkaException:
        return None


def _fill(dirs: LogDirs) -> None:
    for offset in range(0, 40, 2):
        _append(dirs, "written-on", _batch(offset, 2))
    for name in ("segments", "begun-later"):
        for offset in range(0, 200, 2):
            _append(dirs, name, _batch(offset, 2), epoch=min(EPOCH_MAX, offset // 80))
    for offset in range(0, 200, 4):
        codec = [*Codec][offset // 4 % len(Codec)]
        _append(dirs, "codecs", _batch(offset, 4, codec=codec))
    for offset in range(0, 180, 3):
        producer_id, sequence = 100 + offset // 3 % 4, 3 * (offset // 12)
        _append(dirs, "producers", _batch(offset, 3, producer=(producer_id, 0, sequence)))
    for number in range(30):
        batch = _batch(0, 2, producer=(200 + number % 2, 0, 2 * (number // 2)), transactional=True)
        _append(dirs, "transactions", batch)
        if number % 2 == 0:
            marker = build_end_marker(
                producer_id=200,
                producer_epoch=0,
                is_commit=number % 4 == 0,
                coordinator_epoch=0,
                timestamp_ms=WRITTEN_MS,
            )
            _append(dirs, "transactions", bytes(marker), origin=Origin.COORDINATOR)


def _append(
    dirs: LogDirs, topic: str, batch: bytes, *, epoch: int = 0, origin: Origin = Origin.CLIENT
) -> None:
    log = dirs.logs[Partition(topic, 0)]
    view = bytearray(batch)
    done = log.append_as_leader(
        view, read_header(view, 0), leader_epoch=epoch, now_ms=WRITTEN_MS, origin=origin
    )
    assert isinstance(done, Appended), done


def _batch(
    offset: int,
    count: int,
    *,
    codec: Codec = Codec.NONE,
    producer: tuple[int, int, int] = (-1, -1, -1),
    transactional: bool = False,
) -> bytes:
    records = [
        Record(f"key-{number}".encode(), _value(number), (("n", b"1"),), WRITTEN_MS + number)
        for number in range(offset, offset + count)
    ]
    producer_id, epoch, sequence = producer
    return bytes(
        build_batch(
            records,
            codec=codec,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            is_transactional=transactional,
        )
    )


def _value(offset: int) -> bytes:
    return f"value {offset} ".encode() * (1 + offset % 60)


def _opened(directory: Path) -> LogDirs:
    dirs = LogDirs(OsDisk(), [str(directory)])
    dirs.open(LogConfig(segment_bytes=16_384), {}, 1_000)
    assert not dirs.offline, dirs.offline
    return dirs


def _read_all(log: Log) -> bytes:
    content, offset = b"", log.log_start_offset
    while offset < log.end_offset:
        found = log.read(offset, 100_000, log.end_offset)
        assert found is not None, f"{log.partition} has offset {offset}"
        piece = found.read()
        assert piece, f"{log.partition} gives nothing at {offset}"
        content += piece
        offset = described_by_java(piece)[-1]["last_offset"] + 1
    return content


def _size_below(content: bytes, offset: int) -> int:
    """How many bytes of batches lie wholly below an offset."""
    return sum(batch["size"] for batch in described_by_java(content) if batch["last_offset"] < offset)


def _offsets(checkpoint: Path) -> dict[str, int]:
    lines = [line.split() for line in checkpoint.read_text().splitlines()[2:]]
    return {f"{topic}-{partition}": int(offset) for topic, partition, offset in lines}


def _keep_only_last_batches(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    """Kafka's recovery remembers one batch of each producer, ours all that its scan has shown."""
    for mine, other in zip(ours["producers"], theirs["producers"], strict=True):
        known = len(other["batches"])
        mine["batches"] = [batch[:3] for batch in mine["batches"][-known:]] if known else []
        other["batches"] = [batch[:3] for batch in other["batches"]]  # a snapshot has but one timestamp


def _described_producers(handed_over: HandedOver, topic: str) -> list[list[str]]:
    args = ("describe-producers", "--topic", topic, "--partition", "0")
    tool = "org.apache.kafka.tools.TransactionsCommand"
    run = run_main(tool, "--bootstrap-server", handed_over.cluster.bootstrap, *args)
    assert run.exit_code == 0, run.stderr
    return [line.split() for line in run.stdout.splitlines()[1:]]
