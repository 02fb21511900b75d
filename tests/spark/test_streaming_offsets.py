"""A stream's offsets from trigger to trigger, asked of a real cluster, without Spark around them."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("numba")

from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from ottla.client.admin.topics import (
    a_topic,
    create_partitions,
    create_topics,
    delete_records,
    delete_topics,
    describe_topics,
)
from ottla.client.blocking.client import Client
from ottla.launch.cluster import Cluster
from ottla.model.ids import TopicPartition
from ottla.spark.errors import DataLoss, OptionRefused
from ottla.spark.options.read import read_options
from ottla.spark.options.schema import read_schema
from ottla.spark.read.offsets import as_dict, from_dict
from ottla.spark.read.stream import StreamReader
from ottla.wire.apis.metadata import MetadataRequest, MetadataRequestTopic
from support.running.waiting import wait_until
from support.wire.client import WireClient

pytestmark = [pytest.mark.slow, pytest.mark.java, pytest.mark.filterwarnings("ignore::ResourceWarning")]


def a_reader(cluster: Cluster, topic: str, **options: str) -> StreamReader:
    given = {
        "kafka.bootstrap.servers": cluster.bootstrap_servers,
        "subscribe": topic,
        "startingOffsets": "earliest",
        **options,
    }
    return StreamReader(read_options(given, is_stream=True), read_schema(False))


def make(cluster: Cluster, topic: str, partitions: int) -> None:
    with Client(cluster.bootstrap_servers) as client:
        client.run(create_topics, [a_topic(topic, partitions=partitions, replication_factor=1)])


def send(cluster: Cluster, topic: str, partition: int, count: int) -> None:
    with Client(cluster.bootstrap_servers) as client:
        producer = client.producer()
        for n in range(count):
            producer.send(topic, b"%d" % n, partition=partition)
        producer.flush()


def ends(offsets: dict[str, Any]) -> dict[str, Any]:
    """The offsets alone, as people write them."""
    return as_dict(from_dict(offsets))


def rows(reader: StreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[tuple[int, int]]:
    """What a micro-batch holds: partitions and offsets."""
    found = []
    for piece in reader.partitions(start, end):
        for batch in reader.read(piece):
            found += [(row["partition"], row["offset"]) for row in batch.to_pylist()]
    return found


def test_limited_batches_follow_each_other_without_gap_or_repetition(cluster: Cluster) -> None:
    make(cluster, "limited", 2)
    send(cluster, "limited", 0, 50)
    send(cluster, "limited", 1, 10)
    reader = a_reader(cluster, "limited", maxOffsetsPerTrigger="7")
    assert reader.getDefaultReadLimit() == ReadMaxRows(7)

    at = reader.initialOffset()
    found: list[tuple[int, int]] = []
    while (end := reader.latestOffset(at, ReadMaxRows(7))) != at:
        found += rows(reader, at, end)
        at = end

    assert sorted(found) == [(0, n) for n in range(50)] + [(1, n) for n in range(10)]
    assert len(found) == 60
    assert reader.reportLatestOffset() == {"limited": {"0": 50, "1": 10}}


def all_know(cluster: Cluster, topic: str, partitions: int) -> bool:
    """Whether each broker, asked by itself, tells of so many partitions."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
    for broker in cluster.brokers:
        with WireClient(broker.address) as client:
            if len(client.ask(request, 9).topics[0].partitions) != partitions:
                return False
    return True


def test_a_partition_that_appears_is_read_from_its_first_record(cluster: Cluster) -> None:
    make(cluster, "appearing", 1)
    send(cluster, "appearing", 0, 3)
    reader = a_reader(cluster, "appearing")
    start = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())

    with Client(cluster.bootstrap_servers) as client:
        client.run(create_partitions, {"appearing": 2})
    wait_until(lambda: all_know(cluster, "appearing", 2), "every broker knows the new partition")
    send(cluster, "appearing", 1, 4)
    end = reader.latestOffset(start, ReadAllAvailable())

    assert ends(end) == {"appearing": {"0": 3, "1": 4}}
    assert rows(reader, start, end) == [(1, n) for n in range(4)]
    assert rows(a_reader(cluster, "appearing"), start, end) == [(1, n) for n in range(4)], (
        "a restart plans the same"
    )


def test_too_little_waits_for_more_or_for_the_delay(cluster: Cluster) -> None:
    make(cluster, "waiting", 1)
    send(cluster, "waiting", 0, 5)
    patient = a_reader(cluster, "waiting", minOffsetsPerTrigger="10", maxTriggerDelay="1h")
    hasty = a_reader(cluster, "waiting", minOffsetsPerTrigger="10", maxTriggerDelay="0s")

    first = patient.latestOffset(patient.initialOffset(), ReadAllAvailable())
    send(cluster, "waiting", 0, 5)
    second = patient.latestOffset(first, ReadAllAvailable())
    send(cluster, "waiting", 0, 5)
    third = patient.latestOffset(second, ReadAllAvailable())

    assert ends(first) == {"waiting": {"0": 5}}, "the first batch does not wait"
    assert second == first
    assert ends(third) == {"waiting": {"0": 15}}
    assert ends(hasty.latestOffset(hasty.initialOffset(), ReadAllAvailable())) == ends(third)
    send(cluster, "waiting", 0, 1)
    assert ends(hasty.latestOffset(third, ReadAllAvailable())) == {"waiting": {"0": 16}}


def test_available_now_ends_where_the_log_ended(cluster: Cluster) -> None:
    make(cluster, "bounded", 1)
    send(cluster, "bounded", 0, 5)
    reader = a_reader(cluster, "bounded")

    reader.prepareForTriggerAvailableNow()
    first = reader.latestOffset(reader.initialOffset(), ReadMaxRows(3))
    send(cluster, "bounded", 0, 5)

    assert ends(reader.latestOffset(first, ReadAllAvailable())) == {"bounded": {"0": 5}}


def test_a_topic_deleted_and_made_again_is_told_as_data_loss(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    make(cluster, "reborn", 1)
    send(cluster, "reborn", 0, 5)
    strict, lenient = a_reader(cluster, "reborn"), a_reader(cluster, "reborn", failOnDataLoss="false")
    assert strict.initialOffset() == lenient.initialOffset()
    start = strict.latestOffset(strict.initialOffset(), ReadAllAvailable())

    with Client(cluster.bootstrap_servers) as client:
        client.run(delete_topics, ["reborn"])
        wait_until(lambda: client.run(describe_topics, ["reborn"]).topics[0].error_code, "the topic is gone")
    with pytest.raises(DataLoss, match="reborn-0 is gone; it was read up to offset 5"):
        strict.latestOffset(start, ReadAllAvailable())
    gone = lenient.latestOffset(start, ReadAllAvailable())
    make(cluster, "reborn", 1)
    send(cluster, "reborn", 0, 2)
    back = lenient.latestOffset(gone, ReadAllAvailable())

    assert gone == start, "what was read is remembered"
    assert rows(lenient, gone, back) == [(0, 0), (0, 1)]
    told = [record.getMessage() for record in caplog.records if "data loss" in record.getMessage()]
    assert told == ["data loss what=reborn-0 is gone; it was read up to offset 5"], "once"


def test_a_topic_made_again_is_told_as_data_loss_however_long_it_has_become(cluster: Cluster) -> None:
    make(cluster, "longer", 1)
    send(cluster, "longer", 0, 3)
    strict, lenient = a_reader(cluster, "longer"), a_reader(cluster, "longer", failOnDataLoss="false")
    start = strict.latestOffset(strict.initialOffset(), ReadAllAvailable())

    with Client(cluster.bootstrap_servers) as client:
        client.run(delete_topics, ["longer"])
        wait_until(lambda: client.run(describe_topics, ["longer"]).topics[0].error_code, "the topic is gone")
    make(cluster, "longer", 1)
    send(cluster, "longer", 0, 7)

    with pytest.raises(DataLoss, match="longer was deleted and made again; longer-0 was read up to 3"):
        strict.latestOffset(start, ReadAllAvailable())
    end = lenient.latestOffset(start, ReadAllAvailable())
    again = a_reader(cluster, "longer", failOnDataLoss="false")
    assert rows(lenient, start, end) == [(0, n) for n in range(7)]
    assert rows(again, start, end) == [(0, n) for n in range(7)], "a restart plans the same"


def test_retention_that_overtakes_a_stream_is_told_to_the_offset_or_passed_over(cluster: Cluster) -> None:
    make(cluster, "overtaken", 1)
    send(cluster, "overtaken", 0, 20)
    strict, lenient = a_reader(cluster, "overtaken"), a_reader(cluster, "overtaken", failOnDataLoss="false")
    start = strict.initialOffset()
    end = strict.latestOffset(start, ReadAllAvailable())

    with Client(cluster.bootstrap_servers) as client:
        client.run(delete_records, {TopicPartition("overtaken", 0): 12})

    with pytest.raises(DataLoss, match=r"offsets \[0, 12\) of overtaken-0 are no longer in the log"):
        rows(strict, start, end)
    assert rows(lenient, start, end) == [(0, n) for n in range(12, 20)]


def test_what_retention_took_is_told_by_the_driver_and_passed_over_in_one_step(cluster: Cluster) -> None:
    make(cluster, "outrun", 1)
    send(cluster, "outrun", 0, 40)
    strict, lenient = a_reader(cluster, "outrun"), a_reader(cluster, "outrun", failOnDataLoss="false")
    start = {"outrun": {"0": 5}}

    with Client(cluster.bootstrap_servers) as client:
        client.run(delete_records, {TopicPartition("outrun", 0): 30})

    with pytest.raises(DataLoss, match=r"offsets \[5, 30\) of outrun-0 are no longer in the log"):
        strict.latestOffset(start, ReadAllAvailable())
    end = lenient.latestOffset(start, ReadMaxRows(4))
    assert ends(end) == {"outrun": {"0": 34}}
    assert rows(lenient, start, end) == [(0, n) for n in range(30, 34)]


def test_a_checkpoint_without_ids_is_read_as_before(cluster: Cluster) -> None:
    make(cluster, "elder", 1)
    send(cluster, "elder", 0, 3)
    reader = a_reader(cluster, "elder")

    end = reader.latestOffset({"elder": {"0": 1}}, ReadAllAvailable())

    assert rows(reader, {"elder": {"0": 1}}, end) == [(0, 1), (0, 2)]


def test_a_topic_that_never_was_is_refused_at_the_start(cluster: Cluster) -> None:
    with pytest.raises(OptionRefused, match="option subscribe='never-was'"):
        a_reader(cluster, "never-was").initialOffset()
