"""Every row of a task is written, whatever happens to the topic meanwhile."""

from __future__ import annotations

import pytest

pytest.importorskip("numba")
pytest.importorskip("pyspark")

import pyarrow as pa

from ottla.model.ids import TopicPartition
from ottla.records.compression import Codec
from ottla.spark.errors import OptionRefused
from ottla.spark.options.write import WriteOptions, write_options
from ottla.spark.write.encoding import ArrowEncoder
from ottla.spark.write.sinks import check_topic, write_rows
from ottla.wire.keys import ApiKey
from support.client.fake_client import SERVERS, serve
from support.client.fake_cluster import SILENCE, FakeCluster, FakeLog


@pytest.fixture
def cluster() -> FakeCluster:
    made = FakeCluster()
    made.topic("orders", leaders=[1])
    return made


def options(**given: str) -> WriteOptions:
    return write_options({"kafka.bootstrap.servers": SERVERS, "topic": "orders", **given})


def some_rows(count: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"value": [b"%d" % n for n in range(count)]})


def test_rows_without_a_key_go_to_the_partitions_that_were_counted(
    monkeypatch: pytest.MonkeyPatch, cluster: FakeCluster
) -> None:
    wanted = options()
    client = serve(monkeypatch, cluster, wanted.kafka.client)

    def batches_while_the_topic_grows() -> object:
        for _ in range(20):
            yield some_rows(10)
            for number in range(1, 40):
                cluster.logs[TopicPartition("orders", number)] = FakeLog(leader=2)
            client.run(lambda engine: engine.refresh(engine.now_ms + 10_000))

    written = write_rows(wanted, batches_while_the_topic_grows())  # type: ignore[arg-type]

    assert written.refusal is None
    assert written.record_count == sum(len(log.records()) for log in cluster.logs.values()) == 200


def test_a_topic_without_partitions_is_not_written_to(
    monkeypatch: pytest.MonkeyPatch, cluster: FakeCluster
) -> None:
    wanted = options()
    serve(monkeypatch, cluster, wanted.kafka.client)
    cluster.logs.clear()

    with pytest.raises(OptionRefused, match="option topic='orders': the cluster has no such topic"):
        check_topic(wanted)


def test_a_partition_that_does_not_exist_is_never_chosen() -> None:
    encoder = ArrowEncoder(
        topic="orders",
        codec=Codec.NONE,
        batch_bytes=4_000,
        record_bytes_max=1_000_000,
        preserve_timestamp=False,
        sticky=lambda _: 3,
    )

    with pytest.raises(AssertionError, match="orders has 3 partitions, and 3 is none of them"):
        list(encoder.encode(some_rows(5), {"orders": 3}, now_ms=1))


def test_a_task_that_failed_leaves_nothing_to_be_written_later(
    monkeypatch: pytest.MonkeyPatch, cluster: FakeCluster
) -> None:
    wanted = options()
    serve(monkeypatch, cluster, wanted.kafka.client)
    cluster.script(ApiKey.PRODUCE, *[SILENCE] * 5)

    def batches_that_break() -> object:
        yield some_rows(10)
        raise OSError("the worker's socket broke")

    with pytest.raises(OSError, match="broke"):
        write_rows(wanted, batches_that_break())  # type: ignore[arg-type]
    cluster.scripted.clear()
    cluster.pass_time(200_000, step_ms=1_000)

    assert [record for log in cluster.logs.values() for record in log.records()] == []


def test_tasks_of_a_process_share_a_producer_id_and_its_sequences_until_one_fails(
    monkeypatch: pytest.MonkeyPatch, cluster: FakeCluster
) -> None:
    wanted = options()
    serve(monkeypatch, cluster, wanted.kafka.client)

    for _ in range(10):
        assert write_rows(wanted, [some_rows(5)]).refusal is None
    assert len(cluster.requests(ApiKey.INIT_PRODUCER_ID)) == 1
    assert len(cluster.logs[TopicPartition("orders", 0)].records()) == 50

    def batches_that_break() -> object:
        yield some_rows(5)
        raise RuntimeError("the query behind it failed")

    with pytest.raises(RuntimeError):
        write_rows(wanted, batches_that_break())  # type: ignore[arg-type]
    assert write_rows(wanted, [some_rows(5)]).refusal is None
    assert len(cluster.requests(ApiKey.INIT_PRODUCER_ID)) == 2, "what a failed task has sent is unknown"
