"""Client libraries and Apache's tools on a cluster of both kinds: nobody can tell who leads."""

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import aiokafka
import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition

from support.clusters.mixed import MixedCluster, mixed_cluster, read_all
from support.processes.apache_tools import run_main
from support.running.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.java, pytest.mark.apache]

OTTLA, APACHE, CONTROLLER = 1, 2, 3
KINDS = {OTTLA: "ottla", APACHE: "apache", CONTROLLER: "apache"}
RECORDS = 300
LEADERS = [OTTLA, APACHE]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, jars: object) -> Iterator[MixedCluster]:
    with mixed_cluster(tmp_path_factory.mktemp("mixed"), KINDS) as running:
        running.elect_controller(CONTROLLER)
        yield running


def a_topic(cluster: MixedCluster, name: str, leader: int) -> str:
    """One partition, led by one kind and followed by the other."""
    follower = APACHE if leader == OTTLA else OTTLA
    topic = f"{name}-{leader}"
    cluster.create(topic, [leader, follower])
    cluster.wait_for_isr(topic, 2)
    wait_until(lambda: end_of(cluster.bootstrap, topic) == 0, "the leader knows that it leads")
    return topic


def end_of(bootstrap: str, topic: str) -> int:
    """How much is written to its partition; -1 while not every broker knows of it."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "measure", "log_level": 0})
    try:
        return int(consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=20)[1])
    except KafkaException:
        return -1
    finally:
        consumer.close()


def values_of(name: str) -> list[str]:
    return [f"{name}-{number}" for number in range(RECORDS)]


def with_kafka_python(bootstrap: str, topic: str, values: list[str]) -> list[str]:
    import kafka

    servers = bootstrap.split(",")
    for acks, codec in ((0, None), (1, "gzip"), ("all", None)):
        producer = kafka.KafkaProducer(
            bootstrap_servers=servers, acks=acks, compression_type=codec, enable_idempotence=acks == "all"
        )
        for value in values[0 if acks == 0 else 100 if acks == 1 else 200 :][:100]:
            producer.send(topic, value.encode(), partition=0).get(timeout=30)
        producer.close()
        if acks == 0:
            # Nobody said that they are written: the next connection's records could overtake them.
            wait_until(lambda: end_of(bootstrap, topic) == 100, "records without acknowledgement are written")
    consumer = kafka.KafkaConsumer(bootstrap_servers=servers, consumer_timeout_ms=15_000)
    consumer.assign([kafka.TopicPartition(topic, 0)])
    consumer.seek_to_beginning()
    read: list[str] = []
    for record in consumer:
        read.append(record.value.decode())
        if len(read) == len(values):
            break
    consumer.close()
    return read


def with_aiokafka(bootstrap: str, topic: str, values: list[str]) -> list[str]:
    async def talk() -> list[str]:
        async with aiokafka.AIOKafkaProducer(
            bootstrap_servers=bootstrap, enable_idempotence=True, compression_type="gzip"
        ) as producer:
            for value in values:
                await producer.send_and_wait(topic, value.encode(), partition=0)
        consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
        consumer.assign([aiokafka.TopicPartition(topic, 0)])
        await consumer.start()
        try:
            read: list[str] = []
            while len(read) < len(values):
                record = await asyncio.wait_for(consumer.getone(), 20)
                read.append(record.value.decode())
            return read
        finally:
            await consumer.stop()

    return asyncio.run(talk())


def with_java(bootstrap: str, topic: str, values: list[str]) -> list[str]:
    """Kafka's console producer and consumer; both are idempotent and use groups by default."""
    sent = run_main(
        "kafka.tools.ConsoleProducer",
        *("--bootstrap-server", bootstrap, "--topic", topic, "--compression-codec", "snappy"),
        stdin="".join(f"{value}\n" for value in values),
    )
    assert sent.exit_code == 0, sent.stderr
    read = run_main(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        *("--bootstrap-server", bootstrap, "--topic", topic, "--partition", "0"),
        *("--offset", "earliest", "--max-messages", str(len(values)), "--timeout-ms", "20000"),
    )
    return [line for line in read.stdout.splitlines() if line in set(values)]


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("leader", LEADERS, ids=["led-by-ottla", "led-by-apache"])
@pytest.mark.parametrize("talk", [with_kafka_python, with_aiokafka, with_java])
def test_a_client_writes_and_reads(
    cluster: MixedCluster, talk: Callable[[str, str, list[str]], list[str]], leader: int
) -> None:
    topic = a_topic(cluster, talk.__name__.replace("_", "-"), leader)
    values = values_of("value")

    assert talk(cluster.bootstrap, topic, values) == values
    assert read_all(cluster, topic) == values


def test_apaches_tools_measure_list_and_delete_at_ottlas_port(cluster: MixedCluster, tmp_path: Path) -> None:
    at_ottla = ("--bootstrap-server", cluster.brokers[OTTLA].address)
    topic = a_topic(cluster, "tooled", OTTLA)
    measured = run_main(
        "org.apache.kafka.tools.ProducerPerformance",
        *("--topic", topic, "--num-records", "2000", "--record-size", "100", "--throughput", "-1"),
        *("--producer-props", f"bootstrap.servers={cluster.brokers[OTTLA].address}", "acks=all"),
    )
    assert "2000 records sent" in measured.stdout, measured.stdout

    offsets = run_main("org.apache.kafka.tools.GetOffsetShell", *at_ottla, "--topic", topic)
    assert f"{topic}:0:2000" in offsets.stdout, offsets.stdout

    plan = tmp_path / "delete.json"
    rows = [{"topic": topic, "partition": 0, "offset": 1500}]
    plan.write_text(json.dumps({"partitions": rows, "version": 1}))
    deleted = run_main(
        "org.apache.kafka.tools.DeleteRecordsCommand", *at_ottla, "--offset-json-file", str(plan)
    )
    assert "low_watermark: 1500" in deleted.stdout, deleted.stdout

    earliest = run_main("org.apache.kafka.tools.GetOffsetShell", *at_ottla, "--topic", topic, "--time", "-2")
    assert f"{topic}:0:1500" in earliest.stdout, earliest.stdout

    described = run_main(
        "org.apache.kafka.tools.LogDirsCommand", *at_ottla, "--describe", "--topic-list", topic
    )
    found = json.loads(next(line for line in described.stdout.splitlines() if line.startswith("{")))
    sizes = {
        broker["broker"]: replica["size"]
        for broker in found["brokers"]
        for directory in broker["logDirs"]
        for replica in directory["partitions"]
    }
    assert sizes[OTTLA] == sizes[APACHE] > 0


def test_a_perf_consumer_reads_what_a_perf_producer_wrote(cluster: MixedCluster) -> None:
    topic = a_topic(cluster, "measured", OTTLA)
    run_main(
        "org.apache.kafka.tools.ProducerPerformance",
        *("--topic", topic, "--num-records", "3000", "--record-size", "500", "--throughput", "-1"),
        *("--producer-props", f"bootstrap.servers={cluster.bootstrap}", "compression.type=zstd"),
    )
    wait_until(lambda: len(read_all(cluster, topic)) == 3_000, "all are written", 30)

    read = run_main(
        "org.apache.kafka.tools.ConsumerPerformance",
        *(
            "--bootstrap-server",
            cluster.bootstrap,
            "--topic",
            topic,
            "--messages",
            "3000",
            "--timeout",
            "30000",
        ),
    )

    assert ", 3000, " in read.stdout, read.stdout
